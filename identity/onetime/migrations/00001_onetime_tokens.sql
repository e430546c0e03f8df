-- +goose NO TRANSACTION
-- +goose Up
-- One-time tokens with an expiry, by the hash of the secret. Instants are
-- microseconds since 1970.
CREATE TABLE IF NOT EXISTS onetime_tokens (
    tenant_id  TEXT   NOT NULL,
    id         TEXT   NOT NULL, -- SHA-256 of the secret
    kind       TEXT   NOT NULL,
    user_id    TEXT   NOT NULL, -- empty: of no user
    payload    BYTEA  NOT NULL, -- sealed
    attempts   BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
