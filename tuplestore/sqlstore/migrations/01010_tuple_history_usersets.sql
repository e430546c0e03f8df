-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS tuple_history_usersets
    ON tuple_history (tenant_number, object, relation, subject, subject_relation) WHERE subject_relation <> '';
