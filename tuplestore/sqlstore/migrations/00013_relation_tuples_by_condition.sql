-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS relation_tuples_by_condition
    ON relation_tuples (tenant_id, object_type, condition, object_id, relation, subject_type, subject_id, subject_relation) WHERE condition <> '';
