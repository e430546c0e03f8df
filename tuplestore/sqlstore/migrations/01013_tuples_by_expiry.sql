-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS tuples_by_expiry
    ON tuples (tenant_number, expires_at) WHERE expires_at <> 0;
