-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS signing_keys_by_due_at ON signing_keys (due_at, kid);
