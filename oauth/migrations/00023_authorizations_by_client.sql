-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS authorizations_by_client ON authorizations (tenant_id, client_id);
