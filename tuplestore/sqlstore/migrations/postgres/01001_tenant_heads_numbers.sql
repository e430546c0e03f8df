-- +goose NO TRANSACTION
-- +goose Up
UPDATE tenant_heads SET tenant_number = CAST(CAST('x' || SUBSTR(ENCODE(SHA256(CONVERT_TO(tenant_id, 'UTF8')), 'hex'), 1, 16) AS BIT(64)) AS BIGINT);
