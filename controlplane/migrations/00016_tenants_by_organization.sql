-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS tenants_by_organization ON tenants (org_id, created_at, id);
