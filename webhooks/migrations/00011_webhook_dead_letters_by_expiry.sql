-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS webhook_dead_letters_by_expiry ON webhook_dead_letters (tenant_id, subscription_id, expires_at);
