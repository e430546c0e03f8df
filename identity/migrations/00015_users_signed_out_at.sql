-- +goose NO TRANSACTION
-- +goose Up
-- When everything was last taken back that was handed out to act as the user.
ALTER TABLE users ADD COLUMN signed_out_at BIGINT NOT NULL DEFAULT 0;
