-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS organization_invitations_by_expiry ON organization_invitations (expires_at, id) WHERE state = 'pending';
