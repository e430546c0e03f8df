-- +goose Up
-- The hash of the secret of the browser that the request came from; empty for one that the
-- application pushed.
ALTER TABLE authorization_requests ADD COLUMN browser TEXT NOT NULL DEFAULT '';
