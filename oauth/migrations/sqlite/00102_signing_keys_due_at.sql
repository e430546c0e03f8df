-- +goose Up
-- When the next step of the key is due, in microseconds since 1970; 0: not known yet.
ALTER TABLE signing_keys ADD COLUMN due_at BIGINT NOT NULL DEFAULT 0;
