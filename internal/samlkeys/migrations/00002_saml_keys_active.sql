-- +goose NO TRANSACTION
-- +goose Up
-- One active key of a use: of two processes that make the first key, one fails and reads the
-- key of the other.
CREATE UNIQUE INDEX IF NOT EXISTS saml_keys_active ON saml_keys (tenant_id, key_use) WHERE state = 'active';
