-- +goose NO TRANSACTION
-- +goose Up
-- Limits of the tenant's own, as JSON; '' for none.
ALTER TABLE tenants ADD COLUMN rate_limits TEXT NOT NULL DEFAULT '';
