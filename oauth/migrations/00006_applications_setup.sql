-- +goose NO TRANSACTION
-- +goose Up
-- The configuration of applications by administrators. Lists are separated by spaces, tags by line
-- breaks; search is the text that searches match, folded. Instants are microseconds since
-- 1970, 0 is never.
ALTER TABLE applications
    ADD COLUMN IF NOT EXISTS description TEXT NOT NULL DEFAULT '',
    ADD COLUMN IF NOT EXISTS redirect_uris TEXT NOT NULL DEFAULT '',
    ADD COLUMN IF NOT EXISTS refresh_token_ttl_s BIGINT NOT NULL DEFAULT 2592000,
    ADD COLUMN IF NOT EXISTS tags TEXT NOT NULL DEFAULT '',
    ADD COLUMN IF NOT EXISTS search TEXT NOT NULL DEFAULT '',
    ADD COLUMN IF NOT EXISTS updated_at BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS changed_by TEXT NOT NULL DEFAULT '',
    ADD COLUMN IF NOT EXISTS secret_rotated_at BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS last_used_at BIGINT NOT NULL DEFAULT 0;
