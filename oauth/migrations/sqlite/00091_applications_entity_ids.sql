-- +goose NO TRANSACTION
-- +goose Up
UPDATE applications SET entity_id = json_extract(service_provider, '$.entity_id') WHERE type = 'saml' AND entity_id = '' AND service_provider <> '';
