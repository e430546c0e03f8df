-- +goose NO TRANSACTION
-- +goose Up
-- Two tenants with one number would share their tuples.
CREATE UNIQUE INDEX IF NOT EXISTS tenant_heads_by_number
    ON tenant_heads (tenant_number);
