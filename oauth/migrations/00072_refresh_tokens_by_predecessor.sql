-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS refresh_tokens_by_predecessor ON refresh_tokens (tenant_id, predecessor) WHERE predecessor <> '';
