-- +goose Up
-- The time of the newest commit, which the next one is not before; 0 if that is not known.
ALTER TABLE tenant_heads ADD COLUMN committed_at BIGINT NOT NULL DEFAULT 0;
