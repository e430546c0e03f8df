-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS tuple_history_by_condition
    ON tuple_history (tenant_number, condition, object, relation, subject, subject_relation) WHERE condition <> '';
