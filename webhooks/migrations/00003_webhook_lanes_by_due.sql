-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS webhook_lanes_by_due ON webhook_lanes (due_at) WHERE paused_at = 0;
