-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS refresh_tokens_by_expiry ON refresh_tokens (expires_at);
