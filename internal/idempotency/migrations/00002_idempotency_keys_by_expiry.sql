-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS idempotency_keys_by_expiry ON idempotency_keys (shard, expires_at);
