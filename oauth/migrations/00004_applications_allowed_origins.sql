-- +goose NO TRANSACTION
-- +goose Up
-- Web origins, separated by spaces.
ALTER TABLE applications ADD COLUMN allowed_origins TEXT NOT NULL DEFAULT '';
