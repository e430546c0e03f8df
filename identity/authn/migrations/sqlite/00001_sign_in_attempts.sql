-- +goose NO TRANSACTION
-- +goose Up
-- Failures in a row, by account. Instants are microseconds since 1970.
CREATE TABLE IF NOT EXISTS sign_in_attempts (
    tenant_id  TEXT   NOT NULL,
    account    TEXT   NOT NULL, -- a keyed hash
    failures   BIGINT NOT NULL,
    next_at    BIGINT NOT NULL, -- when the next attempt may come
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, account)
) WITHOUT ROWID;
