-- +goose NO TRANSACTION
-- +goose Up
CREATE UNIQUE INDEX IF NOT EXISTS saml_keys_next ON saml_keys (tenant_id, key_use) WHERE state = 'next';
