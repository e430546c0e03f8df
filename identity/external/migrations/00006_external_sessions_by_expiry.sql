-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS external_sessions_by_expiry ON external_sessions (expires_at);
