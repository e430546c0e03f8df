-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS organization_invitations_by_time ON organization_invitations (org_id, created_at, id);
