-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS webhook_deliveries_by_id ON webhook_deliveries (tenant_id, id);
