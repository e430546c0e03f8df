-- +goose Up
-- How the application came to be: empty for those of administrators, else a source of strangers.
ALTER TABLE applications ADD COLUMN source TEXT NOT NULL DEFAULT '';
