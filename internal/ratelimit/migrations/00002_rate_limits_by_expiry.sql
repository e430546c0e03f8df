-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS rate_limits_by_expiry ON rate_limits (shard, expires_at);
