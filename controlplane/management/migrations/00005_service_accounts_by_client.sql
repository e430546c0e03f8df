-- +goose NO TRANSACTION
-- +goose Up
CREATE UNIQUE INDEX IF NOT EXISTS service_accounts_by_client ON service_accounts (client_id);
