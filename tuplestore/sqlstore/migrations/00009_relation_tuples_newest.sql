-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS relation_tuples_newest
    ON relation_tuples (tenant_id, object_type, created_rev, object_id) WHERE relation = '';
