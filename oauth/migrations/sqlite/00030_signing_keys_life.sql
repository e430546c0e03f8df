-- +goose Up
-- When a key entered its states next, active, retired and removed, in microseconds since
-- 1970; 0: it did not. Of a key that was removed the private half is gone.
ALTER TABLE signing_keys ADD COLUMN activated_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE signing_keys ADD COLUMN retired_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE signing_keys ADD COLUMN removed_at BIGINT NOT NULL DEFAULT 0;
