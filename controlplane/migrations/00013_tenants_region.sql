-- +goose NO TRANSACTION
-- +goose Up
-- Of its data; '' if the deployment has no regions.
ALTER TABLE tenants ADD COLUMN region TEXT NOT NULL DEFAULT '';
