-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS onetime_tokens_by_user ON onetime_tokens (tenant_id, user_id) WHERE user_id <> '';
