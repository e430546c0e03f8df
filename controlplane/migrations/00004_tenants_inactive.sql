-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS tenants_inactive ON tenants (id) WHERE state <> 'active';
