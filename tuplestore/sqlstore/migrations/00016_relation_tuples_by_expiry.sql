-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS relation_tuples_by_expiry
    ON relation_tuples (tenant_id, expires_at) WHERE expires_at <> 0;
