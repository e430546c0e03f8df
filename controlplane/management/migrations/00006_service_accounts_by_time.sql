-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS service_accounts_by_time ON service_accounts (org_id, created_at, id);
