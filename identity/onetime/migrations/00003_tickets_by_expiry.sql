-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS tickets_by_expiry ON tickets (expires_at);
