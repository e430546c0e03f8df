-- +goose NO TRANSACTION
-- +goose Up
-- Imports are listed newest first.
CREATE INDEX IF NOT EXISTS user_imports_by_age ON user_imports (tenant_id, created_at, id);
