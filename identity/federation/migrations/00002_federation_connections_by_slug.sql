-- +goose NO TRANSACTION
-- +goose Up
CREATE UNIQUE INDEX IF NOT EXISTS federation_connections_by_slug ON federation_connections (tenant_id, slug);
