-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS user_groups_by_creation ON user_groups (tenant_id, created_at, id) WHERE created_at > 0;
