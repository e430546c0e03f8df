-- +goose NO TRANSACTION
-- +goose Up
-- What an application may exchange tokens for, as JSON; empty: its type's default. The same
-- is relations, of which exchanges are asked.
ALTER TABLE applications ADD COLUMN IF NOT EXISTS token_exchange TEXT NOT NULL DEFAULT '';
