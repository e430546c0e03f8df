-- +goose NO TRANSACTION
-- +goose Up
-- The domains whose addresses lead to a connection.
CREATE TABLE IF NOT EXISTS federation_domains (
    tenant_id     TEXT NOT NULL,
    domain        TEXT NOT NULL, -- lower-case ASCII
    connection_id TEXT NOT NULL,
    PRIMARY KEY (tenant_id, domain)
);
