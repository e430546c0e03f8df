-- +goose NO TRANSACTION
-- +goose Up
-- The authorization details (RFC 9396), as JSON; empty: none.
ALTER TABLE grants ADD COLUMN IF NOT EXISTS authorization_details TEXT NOT NULL DEFAULT '';
