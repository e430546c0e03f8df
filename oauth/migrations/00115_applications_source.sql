-- +goose NO TRANSACTION
-- +goose Up
-- How the application came to be: empty for those of administrators, else a source of strangers.
ALTER TABLE applications ADD COLUMN IF NOT EXISTS source TEXT NOT NULL DEFAULT '';
