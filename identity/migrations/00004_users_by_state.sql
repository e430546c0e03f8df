-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS users_by_state ON users (tenant_id, state, created_at, id) WHERE state <> '';
