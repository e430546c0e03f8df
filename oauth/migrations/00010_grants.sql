-- +goose NO TRANSACTION
-- +goose Up
-- What users have let applications do: all tokens that follow from one authorization
-- belong to one grant. Instants are microseconds since 1970; 0 is never.
CREATE TABLE IF NOT EXISTS grants (
    tenant_id        TEXT    NOT NULL,
    id               TEXT    NOT NULL,
    client_id        TEXT    NOT NULL,
    user_id          TEXT    NOT NULL,
    session_id       TEXT    NOT NULL,
    scope            TEXT    NOT NULL, -- as it was granted, without those of groups
    audience         TEXT    NOT NULL,
    nonce            TEXT    NOT NULL,
    methods          TEXT    NOT NULL,
    auth_time        BIGINT  NOT NULL,
    second_factor_at BIGINT  NOT NULL,
    created_at       BIGINT  NOT NULL,
    expires_at       BIGINT  NOT NULL, -- of the whole family of refresh tokens
    revoked_at       BIGINT  NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
