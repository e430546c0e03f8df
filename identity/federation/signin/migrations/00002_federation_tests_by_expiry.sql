-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS federation_tests_by_expiry ON federation_tests (expires_at);
