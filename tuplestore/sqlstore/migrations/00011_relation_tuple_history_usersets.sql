-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS relation_tuple_history_usersets
    ON relation_tuple_history (tenant_id, object_type, object_id, relation, subject_type, subject_id, subject_relation) WHERE subject_relation <> '';
