-- +goose NO TRANSACTION
-- +goose Up
CREATE TABLE IF NOT EXISTS tenants (
    id         TEXT   NOT NULL PRIMARY KEY,
    org_id     TEXT   NOT NULL REFERENCES organizations (id),
    slug       TEXT   NOT NULL UNIQUE,
    name       TEXT   NOT NULL,
    base_url   TEXT   NOT NULL,
    host       TEXT   NOT NULL UNIQUE, -- of base_url, without port; it identifies the tenant of a request
    state      TEXT   NOT NULL,        -- active, suspended, decommissioned
    created_at BIGINT NOT NULL
);
