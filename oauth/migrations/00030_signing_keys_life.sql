-- +goose NO TRANSACTION
-- +goose Up
-- When a key entered its states next, active, retired and removed, in microseconds since
-- 1970; 0: it did not. Of a key that was removed the private half is gone.
ALTER TABLE signing_keys
    ADD COLUMN IF NOT EXISTS activated_at BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS retired_at BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS removed_at BIGINT NOT NULL DEFAULT 0;
