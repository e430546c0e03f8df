-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS client_assertions_by_expiry ON client_assertions (expires_at);
