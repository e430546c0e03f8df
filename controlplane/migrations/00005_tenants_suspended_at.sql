-- +goose NO TRANSACTION
-- +goose Up
-- When the state began; 0 in other states.
ALTER TABLE tenants ADD COLUMN suspended_at BIGINT NOT NULL DEFAULT 0;
