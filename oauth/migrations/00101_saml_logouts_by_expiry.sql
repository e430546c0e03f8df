-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS saml_logouts_by_expiry ON saml_logouts (expires_at);
