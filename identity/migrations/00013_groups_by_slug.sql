-- +goose NO TRANSACTION
-- +goose Up
CREATE UNIQUE INDEX IF NOT EXISTS user_groups_by_slug ON user_groups (tenant_id, slug) WHERE slug <> '';
