-- +goose NO TRANSACTION
-- +goose Up
CREATE UNIQUE INDEX IF NOT EXISTS external_identities_by_user ON external_identities (tenant_id, user_id, connection_id);
