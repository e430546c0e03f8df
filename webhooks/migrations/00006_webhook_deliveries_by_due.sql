-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS webhook_deliveries_by_due ON webhook_deliveries (tenant_id, subscription_id, due_at, id) WHERE due_at > 0;
