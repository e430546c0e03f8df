-- +goose Up
-- The thumbprint of the key that was proved when a refresh token was issued; empty: none was.
ALTER TABLE refresh_tokens ADD COLUMN dpop_jkt TEXT NOT NULL DEFAULT '';
