-- +goose Up
-- What an application may exchange tokens for, as JSON; empty: its type's default. The same
-- is relations, of which exchanges are asked.
ALTER TABLE applications ADD COLUMN token_exchange TEXT NOT NULL DEFAULT '';
