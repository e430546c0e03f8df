-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS external_ids_by_client ON external_ids (tenant_id, client_id, external_id, object_id) WHERE external_id <> '';
