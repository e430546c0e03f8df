-- +goose NO TRANSACTION
-- +goose Up
CREATE UNIQUE INDEX IF NOT EXISTS users_by_email ON users (tenant_id, email_norm) WHERE email_norm <> '';
