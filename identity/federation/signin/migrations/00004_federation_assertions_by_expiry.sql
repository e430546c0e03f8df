-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS federation_assertions_by_expiry ON federation_assertions (expires_at);
