-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS webhook_lanes_paused ON webhook_lanes (tenant_id) WHERE paused_at > 0;
