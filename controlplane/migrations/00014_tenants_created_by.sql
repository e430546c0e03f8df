-- +goose NO TRANSACTION
-- +goose Up
-- Id of a user or an application of the system tenant; '' for a command.
ALTER TABLE tenants ADD COLUMN created_by TEXT NOT NULL DEFAULT '';
