-- +goose NO TRANSACTION
-- +goose Up
-- When all tokens of the user were last revoked.
ALTER TABLE users ADD COLUMN signed_out_at BIGINT NOT NULL DEFAULT 0;
