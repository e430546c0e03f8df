-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS user_imports_unfinished ON user_imports (tenant_id) WHERE finished_at = 0;
