-- +goose NO TRANSACTION
-- +goose Up
CREATE UNIQUE INDEX IF NOT EXISTS device_codes_by_user_code ON device_codes (tenant_id, user_hash);
