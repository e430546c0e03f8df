-- +goose NO TRANSACTION
-- +goose Up
-- How an application wants to be treated, as JSON; empty: its type's default.
ALTER TABLE applications ADD COLUMN IF NOT EXISTS options TEXT NOT NULL DEFAULT '';
