-- +goose NO TRANSACTION
-- +goose Up
ALTER TABLE tenants ADD COLUMN decommissioned_at BIGINT NOT NULL DEFAULT 0;
