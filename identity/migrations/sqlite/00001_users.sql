-- +goose NO TRANSACTION
-- +goose Up
-- Instants are microseconds since 1970. All other indexes are partial on a condition that
-- always holds, and serve only statements that state it: PostgreSQL, planning for an
-- empty table, considers all indexes that begin with the tenant as equal.
CREATE TABLE IF NOT EXISTS users (
    tenant_id              TEXT    NOT NULL,
    id                     TEXT    NOT NULL,
    email                  TEXT    NOT NULL,
    email_norm             TEXT    NOT NULL, -- folded for comparison
    email_verified         BOOLEAN NOT NULL,
    state                  TEXT    NOT NULL, -- pending, active, disabled
    name                   TEXT    NOT NULL,
    given_name             TEXT    NOT NULL,
    family_name            TEXT    NOT NULL,
    picture                TEXT    NOT NULL,
    locale                 TEXT    NOT NULL,
    attributes             TEXT    NOT NULL, -- JSON object; '' when there is none
    password_hash          TEXT    NOT NULL, -- '' when there is no password
    password_must_be_reset BOOLEAN NOT NULL,
    created_at             BIGINT  NOT NULL,
    updated_at             BIGINT  NOT NULL,
    last_signed_in_at      BIGINT  NOT NULL, -- 0: never
    PRIMARY KEY (tenant_id, id)
) WITHOUT ROWID;
