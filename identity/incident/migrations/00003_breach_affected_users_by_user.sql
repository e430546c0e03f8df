-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS breach_affected_users_by_user ON breach_affected_users (tenant_id, user_id);
