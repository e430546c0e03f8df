-- +goose NO TRANSACTION
-- +goose Up
-- Who is signed in, and where. Instants and idle are microseconds; 0 is never.
CREATE TABLE IF NOT EXISTS sessions (
    tenant_id        TEXT    NOT NULL,
    id               TEXT    NOT NULL,
    user_id          TEXT    NOT NULL,
    token_hash       BLOB    NOT NULL, -- SHA-256
    methods          TEXT    NOT NULL, -- RFC 8176, separated by spaces
    auth_time        BIGINT  NOT NULL,
    second_factor_at BIGINT  NOT NULL,
    must_enrol       BOOLEAN NOT NULL, -- good for adding a second factor only
    created_at       BIGINT  NOT NULL,
    last_active_at   BIGINT  NOT NULL,
    expires_at       BIGINT  NOT NULL,
    idle             BIGINT  NOT NULL,
    ip               TEXT    NOT NULL,
    user_agent       TEXT    NOT NULL,
    PRIMARY KEY (tenant_id, id)
) WITHOUT ROWID;
