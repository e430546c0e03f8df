-- +goose NO TRANSACTION
-- +goose Up
-- Codes that are left, as hashes.
CREATE TABLE IF NOT EXISTS backup_codes (
    tenant_id TEXT NOT NULL,
    user_id   TEXT NOT NULL,
    hash      TEXT NOT NULL, -- HMAC-SHA-256
    PRIMARY KEY (tenant_id, user_id, hash)
) WITHOUT ROWID;
