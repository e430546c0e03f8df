-- +goose NO TRANSACTION
-- +goose Up
-- Jobs that failed in all their attempts. Instants are microseconds since 1970.
CREATE TABLE IF NOT EXISTS dead_jobs (
    tenant_id  TEXT   NOT NULL,
    id         TEXT   NOT NULL,
    kind       TEXT   NOT NULL,
    attempts   BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    died_at    BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, id)
) WITHOUT ROWID;
