-- +goose NO TRANSACTION
-- +goose Up
-- The devices that users have signed in on lately. Instants are microseconds since 1970.
CREATE TABLE IF NOT EXISTS known_devices (
    tenant_id    TEXT   NOT NULL,
    user_id      TEXT   NOT NULL,
    fingerprint  TEXT   NOT NULL,
    last_seen_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, user_id, fingerprint)
);
