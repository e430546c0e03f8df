-- +goose NO TRANSACTION
-- +goose Up
-- Saved reports. Times are in microseconds since 1970; next_run_at is 0 without a schedule.
CREATE TABLE IF NOT EXISTS reports (
    tenant_id       TEXT   NOT NULL,
    id              TEXT   NOT NULL,
    kind            TEXT   NOT NULL,
    name            TEXT   NOT NULL,
    parameters      TEXT   NOT NULL, -- JSON
    schedule        TEXT   NOT NULL, -- JSON; empty: none
    next_run_at     BIGINT NOT NULL,
    created_at      BIGINT NOT NULL,
    created_by_type TEXT   NOT NULL,
    created_by      TEXT   NOT NULL,
    updated_at      BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, id)
) WITHOUT ROWID;
