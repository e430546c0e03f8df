-- +goose NO TRANSACTION
-- +goose Up
-- One address has one pending invitation to an organisation.
CREATE UNIQUE INDEX IF NOT EXISTS organization_invitations_pending ON organization_invitations (org_id, email_norm) WHERE state = 'pending';
