-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS tuple_history_newest
    ON tuple_history (tenant_number, SUBSTR(object, 1, INSTR(object, ':') - 1), created_rev, object) WHERE relation = '';
