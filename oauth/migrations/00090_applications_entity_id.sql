-- +goose NO TRANSACTION
-- +goose Up
-- The entity id of the SAML service provider; empty: the application is none.
ALTER TABLE applications ADD COLUMN IF NOT EXISTS entity_id TEXT NOT NULL DEFAULT '';
