-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS tickets_by_user ON tickets (tenant_id, user_id) WHERE user_id <> '';
