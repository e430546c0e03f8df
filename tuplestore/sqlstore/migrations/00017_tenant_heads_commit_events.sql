-- +goose NO TRANSACTION
-- +goose Up
-- How many commits have an event, and up to which revision the history is collected.
ALTER TABLE tenant_heads
    ADD COLUMN IF NOT EXISTS commit_events BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS collected_rev BIGINT NOT NULL DEFAULT 0;
