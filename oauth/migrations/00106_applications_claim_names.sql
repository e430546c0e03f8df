-- +goose NO TRANSACTION
-- +goose Up
-- The names of the claims that are configured for the application, separated by spaces.
ALTER TABLE applications ADD COLUMN IF NOT EXISTS claim_names TEXT NOT NULL DEFAULT '';
