-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS tuples_by_subject
    ON tuples (tenant_number, subject, object, relation, subject_relation) WHERE relation <> '';
