-- +goose NO TRANSACTION
-- +goose Up
-- Issuers whose tokens are exchanged for those of applications (RFC 7523). Instants are
-- microseconds since 1970.
CREATE TABLE IF NOT EXISTS trusted_issuers (
    tenant_id  TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    issuer     TEXT    NOT NULL, -- iss of its tokens
    enabled    BOOLEAN NOT NULL,
    settings   TEXT    NOT NULL, -- JSON
    created_at BIGINT  NOT NULL,
    updated_at BIGINT  NOT NULL,
    changed_by TEXT    NOT NULL, -- actor of the last change; empty: the product
    PRIMARY KEY (tenant_id, id)
);
