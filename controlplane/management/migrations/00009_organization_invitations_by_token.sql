-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS organization_invitations_by_token ON organization_invitations (token_hash) WHERE state = 'pending';
