-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS revocations_by_expiry ON revocations (expires_at);
