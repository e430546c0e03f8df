-- +goose NO TRANSACTION
-- +goose Up
-- The mails about scheduled runs, and what became of them.
CREATE TABLE IF NOT EXISTS report_mails (
    tenant_id TEXT NOT NULL,
    run_id    TEXT NOT NULL,
    user_id   TEXT NOT NULL,
    state     TEXT NOT NULL,
    reason    TEXT NOT NULL,
    PRIMARY KEY (tenant_id, run_id, user_id)
) WITHOUT ROWID;
