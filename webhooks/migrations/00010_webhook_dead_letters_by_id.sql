-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS webhook_dead_letters_by_id ON webhook_dead_letters (tenant_id, id);
