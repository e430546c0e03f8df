-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS jobs_by_tenant ON jobs (kind, tenant_id, due_at);
