-- +goose NO TRANSACTION
-- +goose Up
-- Which user has a WebAuthn credential.
CREATE TABLE IF NOT EXISTS credentials (
    tenant_id     TEXT NOT NULL,
    credential_id TEXT NOT NULL, -- base64url
    user_id       TEXT NOT NULL,
    factor_id     TEXT NOT NULL,
    PRIMARY KEY (tenant_id, credential_id)
);
