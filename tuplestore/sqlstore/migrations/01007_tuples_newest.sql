-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS tuples_newest
    ON tuples (tenant_number, (SPLIT_PART(object, ':', 1)), created_rev, object) WHERE relation = '';
