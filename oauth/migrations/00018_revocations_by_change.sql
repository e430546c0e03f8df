-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS revocations_by_change ON revocations (changed_at);
