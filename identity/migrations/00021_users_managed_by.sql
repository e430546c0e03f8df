-- +goose NO TRANSACTION
-- +goose Up
-- The user of the system tenant who is this user; empty: the user signs in here.
ALTER TABLE users ADD COLUMN IF NOT EXISTS managed_by TEXT NOT NULL DEFAULT '';
