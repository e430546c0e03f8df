-- +goose NO TRANSACTION
-- +goose Up
-- The compressed entries of feeds, in rows of a limited size.
CREATE TABLE IF NOT EXISTS threat_lists (
    tenant_id TEXT   NOT NULL,
    feed_id   TEXT   NOT NULL,
    version   BIGINT NOT NULL,
    chunk     BIGINT NOT NULL,
    data      BYTEA  NOT NULL,
    PRIMARY KEY (tenant_id, feed_id, version, chunk)
);
