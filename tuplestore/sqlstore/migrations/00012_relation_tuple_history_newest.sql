-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS relation_tuple_history_newest
    ON relation_tuple_history (tenant_id, object_type, created_rev, object_id) WHERE relation = '';
