-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS onetime_tokens_by_expiry ON onetime_tokens (expires_at);
