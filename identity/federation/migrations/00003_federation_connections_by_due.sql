-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS federation_connections_by_due ON federation_connections (check_at, tenant_id, id);
