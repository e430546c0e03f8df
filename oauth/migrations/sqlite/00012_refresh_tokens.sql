-- +goose NO TRANSACTION
-- +goose Up
-- Refresh tokens, by their hashes: rotated ones stay, so that their reuse is detected.
CREATE TABLE IF NOT EXISTS refresh_tokens (
    tenant_id  TEXT   NOT NULL,
    hash       TEXT   NOT NULL,
    grant_id   TEXT   NOT NULL,
    client_id  TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    rotated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, hash)
) WITHOUT ROWID;
