-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS tuples_usersets
    ON tuples (tenant_number, object, relation, subject, subject_relation) WHERE subject_relation <> '';
