-- +goose NO TRANSACTION
-- +goose Up
CREATE UNIQUE INDEX IF NOT EXISTS trusted_issuers_by_issuer ON trusted_issuers (tenant_id, issuer);
