-- +goose Up
-- What the person has said to the request, as JSON; empty: nothing yet.
ALTER TABLE authorization_requests ADD COLUMN answer TEXT NOT NULL DEFAULT '';
