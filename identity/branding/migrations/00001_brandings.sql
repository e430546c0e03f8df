-- +goose NO TRANSACTION
-- +goose Up
-- The brandings of tenants, as JSON.
CREATE TABLE IF NOT EXISTS brandings (
    tenant_id  TEXT   NOT NULL PRIMARY KEY,
    mark       TEXT   NOT NULL, -- changes with the branding
    branding   TEXT   NOT NULL,
    updated_at BIGINT NOT NULL
);
