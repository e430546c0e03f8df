-- +goose Up
-- The names of the claims that are configured for the application, separated by spaces.
ALTER TABLE applications ADD COLUMN claim_names TEXT NOT NULL DEFAULT '';
