-- +goose NO TRANSACTION
-- +goose Up
CREATE TABLE IF NOT EXISTS resource_attributes (
    tenant_id   TEXT NOT NULL,
    type        TEXT NOT NULL,
    external_id TEXT NOT NULL,
    attributes  TEXT,
    updated_at  BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, type, external_id)
);
