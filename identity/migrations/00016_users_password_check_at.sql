-- +goose NO TRANSACTION
-- +goose Up
-- When the password is to be looked up among breached ones; 0: at the next sign-in.
ALTER TABLE users ADD COLUMN IF NOT EXISTS password_check_at BIGINT NOT NULL DEFAULT 0;
