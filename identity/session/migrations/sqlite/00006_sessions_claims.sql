-- +goose Up
-- The claims that the sign-in flow added for tokens, as JSON; empty: none.
ALTER TABLE sessions ADD COLUMN claims TEXT NOT NULL DEFAULT '';
