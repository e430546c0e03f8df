-- +goose NO TRANSACTION
-- +goose Up
CREATE TABLE IF NOT EXISTS organizations (
    id         TEXT   NOT NULL PRIMARY KEY,
    slug       TEXT   NOT NULL UNIQUE,
    name       TEXT   NOT NULL,
    created_at BIGINT NOT NULL -- microseconds since 1970, as every instant
);
