-- +goose NO TRANSACTION
-- +goose Up
-- Increases with each change of the threat feeds; 0: there were none.
ALTER TABLE identity_settings ADD COLUMN IF NOT EXISTS threat_revision BIGINT NOT NULL DEFAULT 0;
