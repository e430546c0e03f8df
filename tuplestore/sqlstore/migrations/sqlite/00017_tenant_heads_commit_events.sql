-- +goose Up
-- How many commits have an event, and up to which revision the history is collected.
ALTER TABLE tenant_heads ADD COLUMN commit_events BIGINT NOT NULL DEFAULT 0;
ALTER TABLE tenant_heads ADD COLUMN collected_rev BIGINT NOT NULL DEFAULT 0;
