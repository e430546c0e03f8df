-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS authorization_requests_by_expiry ON authorization_requests (expires_at);
