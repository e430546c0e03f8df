-- +goose NO TRANSACTION
-- +goose Up
ALTER TABLE tenants ADD COLUMN suspend_reason TEXT NOT NULL DEFAULT '';
