-- +goose NO TRANSACTION
-- +goose Up
-- The pictures that brandings name, as PNG.
CREATE TABLE IF NOT EXISTS branding_pictures (
    tenant_id TEXT  NOT NULL,
    variant   TEXT  NOT NULL,
    hash      TEXT  NOT NULL,
    data      BLOB  NOT NULL,
    PRIMARY KEY (tenant_id, variant)
);
