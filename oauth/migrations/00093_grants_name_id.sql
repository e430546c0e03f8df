-- +goose NO TRANSACTION
-- +goose Up
-- The name of the user at a SAML service provider; empty: the application is none.
ALTER TABLE grants ADD COLUMN IF NOT EXISTS name_id TEXT NOT NULL DEFAULT '';
