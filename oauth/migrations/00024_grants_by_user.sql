-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS grants_by_user ON grants (tenant_id, user_id, client_id);
