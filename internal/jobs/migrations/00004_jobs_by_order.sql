-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS jobs_by_order ON jobs (kind, tenant_id, order_key, created_at, id) WHERE order_key <> '';
