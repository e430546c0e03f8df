-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS sessions_by_user ON sessions (tenant_id, user_id) WHERE user_id <> '';
