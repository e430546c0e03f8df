-- +goose Up
-- How an application wants to be treated, as JSON; empty: its type's default.
ALTER TABLE applications ADD COLUMN options TEXT NOT NULL DEFAULT '';
