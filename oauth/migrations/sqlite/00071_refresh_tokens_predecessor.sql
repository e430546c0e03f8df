-- +goose Up
-- The hash of the refresh token that one was issued for; empty: it is the first.
ALTER TABLE refresh_tokens ADD COLUMN predecessor TEXT NOT NULL DEFAULT '';
