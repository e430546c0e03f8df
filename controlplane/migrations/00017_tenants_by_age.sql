-- +goose NO TRANSACTION
-- +goose Up
-- For the first tenant, which a process reads at its start.
CREATE INDEX IF NOT EXISTS tenants_by_age ON tenants (created_at, id);
