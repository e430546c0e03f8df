-- +goose NO TRANSACTION
-- +goose Up
-- The mark of the tenant's branding; '' for none.
ALTER TABLE tenants ADD COLUMN branding TEXT NOT NULL DEFAULT '';
