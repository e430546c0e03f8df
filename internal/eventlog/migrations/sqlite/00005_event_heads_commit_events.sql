-- +goose Up
-- How many events of commits are numbered up to the position, and up to the floor, and the
-- newest revision at the floor.
ALTER TABLE event_heads ADD COLUMN commit_events BIGINT NOT NULL DEFAULT 0;
ALTER TABLE event_heads ADD COLUMN floor_commit_events BIGINT NOT NULL DEFAULT 0;
ALTER TABLE event_heads ADD COLUMN floor_revision BIGINT NOT NULL DEFAULT 0;
