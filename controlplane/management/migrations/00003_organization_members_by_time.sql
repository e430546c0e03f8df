-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS organization_members_by_time ON organization_members (org_id, joined_at, id);
