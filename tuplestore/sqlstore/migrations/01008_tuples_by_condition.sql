-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS tuples_by_condition
    ON tuples (tenant_number, condition, object, relation, subject, subject_relation) WHERE condition <> '';
