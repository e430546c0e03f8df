-- +goose NO TRANSACTION
-- +goose Up
-- The SAML service provider of an application, as JSON; empty: it is none.
ALTER TABLE applications ADD COLUMN IF NOT EXISTS service_provider TEXT NOT NULL DEFAULT '';
