-- +goose Up
-- The name of the user at a SAML service provider; empty: the application is none.
ALTER TABLE grants ADD COLUMN name_id TEXT NOT NULL DEFAULT '';
