-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS tenants_by_purge ON tenants (purge_at, id) WHERE purge_at > 0;
