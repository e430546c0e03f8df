-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS device_codes_by_expiry ON device_codes (expires_at);
