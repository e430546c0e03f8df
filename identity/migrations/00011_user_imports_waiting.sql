-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS user_imports_waiting ON user_imports (lease_until) WHERE finished_at = 0;
