-- +goose NO TRANSACTION
-- +goose Up
-- The keys that imported tenants had in other deployments, the first one's at position 0.
CREATE TABLE IF NOT EXISTS tenant_keys (
    tenant_id TEXT   NOT NULL,
    position  BIGINT NOT NULL,
    key_id    TEXT   NOT NULL, -- of the master key, in hexadecimal
    sealed    BYTEA  NOT NULL, -- the key of the tenant, for (tenant_id, 'tenant key ' || key_id)
    PRIMARY KEY (tenant_id, position)
);
