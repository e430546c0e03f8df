-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS users_by_manager ON users (tenant_id, managed_by) WHERE managed_by <> '';
