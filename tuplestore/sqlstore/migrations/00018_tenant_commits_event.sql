-- +goose NO TRANSACTION
-- +goose Up
-- The event of the write, as its caller encoded it, empty if there is none, and the number of
-- commits up to this one that have an event.
ALTER TABLE tenant_commits
    ADD COLUMN IF NOT EXISTS event TEXT NOT NULL DEFAULT '',
    ADD COLUMN IF NOT EXISTS commit_events BIGINT NOT NULL DEFAULT 0;
