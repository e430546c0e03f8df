-- +goose NO TRANSACTION
-- +goose Up
-- Devices that wait for their users (RFC 8628), by the hashes of their codes. Instants are
-- microseconds since 1970; 0 is never.
CREATE TABLE IF NOT EXISTS device_codes (
    tenant_id  TEXT   NOT NULL,
    hash       TEXT   NOT NULL, -- of the device's code
    user_hash  TEXT   NOT NULL, -- of the code that the user enters
    client_id  TEXT   NOT NULL,
    scope      TEXT   NOT NULL, -- asked for
    audience   TEXT   NOT NULL,
    client_ip  TEXT   NOT NULL, -- from where it was asked
    grant_id   TEXT   NOT NULL, -- the grant of the user; empty: there is none yet
    denied     BOOLEAN NOT NULL,
    interval_s BIGINT NOT NULL, -- between two polls
    polled_at  BIGINT NOT NULL,
    used_at    BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, hash)
) WITHOUT ROWID;
