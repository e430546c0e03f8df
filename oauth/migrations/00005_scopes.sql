-- +goose NO TRANSACTION
-- +goose Up
-- The scopes that tenants registered beside those of the product.
CREATE TABLE IF NOT EXISTS scopes (
    tenant_id   TEXT   NOT NULL,
    name        TEXT   NOT NULL,
    description TEXT   NOT NULL,
    entitlement TEXT   NOT NULL, -- self, group
    created_at  BIGINT NOT NULL, -- microseconds since 1970
    PRIMARY KEY (tenant_id, name)
);
