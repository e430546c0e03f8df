-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS flows_by_expiry ON flows (expires_at);
