-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS tuple_history_newest
    ON tuple_history (tenant_number, (SPLIT_PART(object, ':', 1)), created_rev, object) WHERE relation = '';
