-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS grants_by_client ON grants (tenant_id, client_id, session_id);
