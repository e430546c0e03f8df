-- +goose NO TRANSACTION
-- +goose Up
-- The thumbprint of the key that a code is exchanged with (RFC 9449 §10); empty: any or none.
ALTER TABLE codes ADD COLUMN IF NOT EXISTS dpop_jkt TEXT NOT NULL DEFAULT '';
