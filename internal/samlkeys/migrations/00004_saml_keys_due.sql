-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS saml_keys_due ON saml_keys (due_at);
