-- +goose Up
-- sqldb.TenantNumber of the tenant, by which the rows of its tuples name it.
ALTER TABLE tenant_heads ADD COLUMN tenant_number BIGINT NOT NULL DEFAULT 0;
