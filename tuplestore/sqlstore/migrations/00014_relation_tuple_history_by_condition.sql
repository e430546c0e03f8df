-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS relation_tuple_history_by_condition
    ON relation_tuple_history (tenant_id, object_type, condition, object_id, relation, subject_type, subject_id, subject_relation) WHERE condition <> '';
