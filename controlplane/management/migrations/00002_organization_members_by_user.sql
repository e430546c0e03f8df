-- +goose NO TRANSACTION
-- +goose Up
CREATE UNIQUE INDEX IF NOT EXISTS organization_members_by_user ON organization_members (user_id, org_id);
