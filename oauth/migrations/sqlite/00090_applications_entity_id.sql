-- +goose Up
-- The entity id of the SAML service provider; empty: the application is none.
ALTER TABLE applications ADD COLUMN entity_id TEXT NOT NULL DEFAULT '';
