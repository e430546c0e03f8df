-- +goose Up
-- The event of the write, as its caller encoded it, empty if there is none, and the number of
-- commits up to this one that have an event.
ALTER TABLE tenant_commits ADD COLUMN event TEXT NOT NULL DEFAULT '';
ALTER TABLE tenant_commits ADD COLUMN commit_events BIGINT NOT NULL DEFAULT 0;
