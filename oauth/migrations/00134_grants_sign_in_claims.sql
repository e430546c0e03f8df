-- +goose NO TRANSACTION
-- +goose Up
-- The claims that the sign-in added for tokens, as JSON; empty: none.
ALTER TABLE grants ADD COLUMN IF NOT EXISTS sign_in_claims TEXT NOT NULL DEFAULT '';
