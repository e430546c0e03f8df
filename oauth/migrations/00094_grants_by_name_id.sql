-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS grants_by_name_id ON grants (tenant_id, client_id, name_id) WHERE name_id <> '';
