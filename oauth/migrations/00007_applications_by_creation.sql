-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS applications_by_creation ON applications (tenant_id, created_at, id) WHERE created_at > 0;
