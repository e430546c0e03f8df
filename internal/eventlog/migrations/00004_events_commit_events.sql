-- +goose NO TRANSACTION
-- +goose Up
-- How many events of commits (tenant_commits) are before the event.
ALTER TABLE events ADD COLUMN IF NOT EXISTS commit_events BIGINT NOT NULL DEFAULT 0;
