-- +goose NO TRANSACTION
-- +goose Up
-- For the bounds of unvetted applications.
CREATE INDEX IF NOT EXISTS applications_by_source ON applications (source, created_at) WHERE source <> '';
