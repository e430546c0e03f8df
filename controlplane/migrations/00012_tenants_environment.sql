-- +goose NO TRANSACTION
-- +goose Up
-- production, staging or development.
ALTER TABLE tenants ADD COLUMN environment TEXT NOT NULL DEFAULT 'production';
