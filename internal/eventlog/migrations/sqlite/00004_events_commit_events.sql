-- +goose Up
-- How many events of commits (tenant_commits) are before the event.
ALTER TABLE events ADD COLUMN commit_events BIGINT NOT NULL DEFAULT 0;
