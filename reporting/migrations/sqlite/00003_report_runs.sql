-- +goose NO TRANSACTION
-- +goose Up
-- The runs of reports, with the report as it was then. claim names the attempt that the run belongs
-- to while it is running.
CREATE TABLE IF NOT EXISTS report_runs (
    tenant_id       TEXT    NOT NULL,
    report_id       TEXT    NOT NULL,
    id              TEXT    NOT NULL,
    kind            TEXT    NOT NULL,
    name            TEXT    NOT NULL,
    parameters      TEXT    NOT NULL, -- JSON
    recipients      TEXT    NOT NULL, -- JSON
    state           TEXT    NOT NULL,
    scheduled       BOOLEAN NOT NULL,
    claim           TEXT    NOT NULL,
    row_count       BIGINT  NOT NULL,
    truncated       BOOLEAN NOT NULL,
    figures         TEXT    NOT NULL, -- JSON
    failure         TEXT    NOT NULL, -- JSON; empty: none
    created_at      BIGINT  NOT NULL,
    created_by_type TEXT    NOT NULL,
    created_by      TEXT    NOT NULL,
    started_at      BIGINT  NOT NULL,
    finished_at     BIGINT  NOT NULL,
    PRIMARY KEY (tenant_id, report_id, id)
) WITHOUT ROWID;
