-- +goose NO TRANSACTION
-- +goose Up
ALTER TABLE organizations ADD COLUMN updated_at BIGINT NOT NULL DEFAULT 0;
