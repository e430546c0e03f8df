-- +goose Up
-- A successor is derived from its predecessor and its seed; empty: it has no predecessor.
ALTER TABLE refresh_tokens ADD COLUMN seed TEXT NOT NULL DEFAULT '';
