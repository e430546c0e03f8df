-- +goose NO TRANSACTION
-- +goose Up
UPDATE applications SET entity_id = CAST(service_provider AS JSONB)->>'entity_id' WHERE type = 'saml' AND entity_id = '' AND service_provider <> '';
