-- +goose NO TRANSACTION
-- +goose Up
-- Assertions that were accepted, until they expire, in microseconds since 1970. The id is a hash.
CREATE TABLE IF NOT EXISTS federation_assertions (
    tenant_id     TEXT   NOT NULL,
    connection_id TEXT   NOT NULL,
    id            TEXT   NOT NULL,
    expires_at    BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, connection_id, id)
) WITHOUT ROWID;
