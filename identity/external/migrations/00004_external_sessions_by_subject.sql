-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS external_sessions_by_subject ON external_sessions (tenant_id, connection_id, subject);
