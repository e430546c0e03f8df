-- +goose NO TRANSACTION
-- +goose Up
-- The hash of the secret of the browser that the request came from; empty for one that the
-- application pushed.
ALTER TABLE authorization_requests ADD COLUMN IF NOT EXISTS browser TEXT NOT NULL DEFAULT '';
