-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS tuple_history_by_subject
    ON tuple_history (tenant_number, subject, object, relation, subject_relation) WHERE relation <> '';
