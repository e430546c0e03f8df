-- +goose NO TRANSACTION
-- +goose Up
UPDATE tenant_heads SET tenant_number = tenant_number(tenant_id);
