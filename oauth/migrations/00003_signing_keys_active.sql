-- +goose NO TRANSACTION
-- +goose Up
-- One active key of an algorithm: of two processes that create a tenant's keys
-- at once, one fails and takes the other's.
CREATE UNIQUE INDEX IF NOT EXISTS signing_keys_active ON signing_keys (tenant_id, alg) WHERE state = 'active';
