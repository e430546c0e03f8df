-- +goose NO TRANSACTION
-- +goose Up
-- The rows of runs, in chunks of the same size, the last of which may be smaller.
CREATE TABLE IF NOT EXISTS report_chunks (
    tenant_id  TEXT   NOT NULL,
    run_id     TEXT   NOT NULL,
    chunk      BIGINT NOT NULL,
    chunk_rows TEXT   NOT NULL, -- JSON
    PRIMARY KEY (tenant_id, run_id, chunk)
) WITHOUT ROWID;
