-- +goose NO TRANSACTION
-- +goose Up
-- Not unique: applications of before could have the same entity id.
CREATE INDEX IF NOT EXISTS applications_by_entity_id ON applications (tenant_id, entity_id) WHERE entity_id <> '';
