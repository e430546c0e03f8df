-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS outbox_by_due ON outbox (due_at);
