-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS threat_feeds_by_due ON threat_feeds (check_at, tenant_id, id);
