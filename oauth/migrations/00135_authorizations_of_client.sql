-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS authorizations_of_client ON authorizations (tenant_id, client_id, user_id);
