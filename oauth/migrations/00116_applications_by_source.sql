-- +goose NO TRANSACTION
-- +goose Up
-- For the bounds of applications from strangers.
CREATE INDEX IF NOT EXISTS applications_by_source ON applications (source, created_at) WHERE source <> '';
