-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS tuples_newest
    ON tuples (tenant_number, SUBSTR(object, 1, INSTR(object, ':') - 1), created_rev, object) WHERE relation = '';
