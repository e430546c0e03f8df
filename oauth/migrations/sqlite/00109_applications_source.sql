-- +goose Up
-- How the application came to be: empty for those of administrators, else anyone or document.
ALTER TABLE applications ADD COLUMN source TEXT NOT NULL DEFAULT '';
