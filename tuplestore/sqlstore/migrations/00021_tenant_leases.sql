-- +goose NO TRANSACTION
-- +goose Up
-- The tenants that processes may hold read leases of. Rows without one of lease_nodes mean nothing.
CREATE TABLE IF NOT EXISTS tenant_leases (
    tenant_id TEXT NOT NULL,
    node_id   TEXT NOT NULL,
    PRIMARY KEY (tenant_id, node_id)
);
