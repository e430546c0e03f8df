-- +goose NO TRANSACTION
-- +goose Up
-- How the application came to be: empty for those of administrators, else anyone or document.
ALTER TABLE applications ADD COLUMN IF NOT EXISTS source TEXT NOT NULL DEFAULT '';
