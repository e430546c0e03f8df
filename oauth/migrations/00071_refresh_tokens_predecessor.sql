-- +goose NO TRANSACTION
-- +goose Up
-- The hash of the refresh token that one was issued for; empty: it is the first.
ALTER TABLE refresh_tokens ADD COLUMN IF NOT EXISTS predecessor TEXT NOT NULL DEFAULT '';
