-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS applications_by_workload_issuers ON applications (tenant_id) WHERE workload_issuers <> '';
