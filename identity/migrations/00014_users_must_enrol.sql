-- +goose NO TRANSACTION
-- +goose Up
-- Whether a second factor must be added at the next sign-in.
ALTER TABLE users ADD COLUMN must_enrol BOOLEAN NOT NULL DEFAULT false;
