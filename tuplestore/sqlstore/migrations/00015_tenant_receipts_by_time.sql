-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS tenant_receipts_by_time
    ON tenant_receipts (tenant_id, committed_at);
