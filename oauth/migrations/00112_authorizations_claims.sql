-- +goose NO TRANSACTION
-- +goose Up
-- The claims to which the user agreed beside those of the scopes, separated by spaces.
ALTER TABLE authorizations ADD COLUMN IF NOT EXISTS claims TEXT NOT NULL DEFAULT '';
