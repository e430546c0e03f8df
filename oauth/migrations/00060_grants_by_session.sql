-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS grants_by_session ON grants (tenant_id, session_id);
