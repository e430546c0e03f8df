-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS codes_by_expiry ON codes (expires_at);
