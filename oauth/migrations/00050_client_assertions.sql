-- +goose NO TRANSACTION
-- +goose Up
-- Assertions that clients have proved by who they are, each of which counts once. What is
-- over is deleted. Instants are microseconds since 1970.
CREATE TABLE IF NOT EXISTS client_assertions (
    tenant_id  TEXT   NOT NULL,
    hash       TEXT   NOT NULL, -- of client_id and jti
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, hash)
);
