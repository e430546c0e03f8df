-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS users_by_creation ON users (tenant_id, created_at, id) WHERE created_at > 0;
