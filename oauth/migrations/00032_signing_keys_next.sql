-- +goose NO TRANSACTION
-- +goose Up
-- One next key of an algorithm, as there is one active.
CREATE UNIQUE INDEX IF NOT EXISTS signing_keys_next ON signing_keys (tenant_id, alg) WHERE state = 'next';
