-- +goose Up
-- The configuration of applications by administrators. Lists are separated by spaces, tags by line
-- breaks; search is the text that searches match, folded. Instants are microseconds since
-- 1970, 0 is never.
ALTER TABLE applications ADD COLUMN description TEXT NOT NULL DEFAULT '';
ALTER TABLE applications ADD COLUMN redirect_uris TEXT NOT NULL DEFAULT '';
ALTER TABLE applications ADD COLUMN refresh_token_ttl_s BIGINT NOT NULL DEFAULT 2592000;
ALTER TABLE applications ADD COLUMN tags TEXT NOT NULL DEFAULT '';
ALTER TABLE applications ADD COLUMN search TEXT NOT NULL DEFAULT '';
ALTER TABLE applications ADD COLUMN updated_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE applications ADD COLUMN changed_by TEXT NOT NULL DEFAULT '';
ALTER TABLE applications ADD COLUMN secret_rotated_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE applications ADD COLUMN last_used_at BIGINT NOT NULL DEFAULT 0;
