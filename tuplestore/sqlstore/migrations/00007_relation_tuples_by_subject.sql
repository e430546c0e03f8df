-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS relation_tuples_by_subject
    ON relation_tuples (tenant_id, subject_type, subject_id, object_type, object_id, relation, subject_relation) WHERE relation <> '';
