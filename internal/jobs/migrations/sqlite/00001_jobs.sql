-- +goose NO TRANSACTION
-- +goose Up
-- Jobs to run after the commit of the change that requires them. Instants are
-- microseconds since 1970.
CREATE TABLE IF NOT EXISTS jobs (
    tenant_id  TEXT   NOT NULL,
    id         TEXT   NOT NULL,
    kind       TEXT   NOT NULL,
    payload    BLOB   NOT NULL, -- sealed
    attempts   BIGINT NOT NULL, -- begun
    created_at BIGINT NOT NULL,
    due_at     BIGINT NOT NULL, -- of a running job: the end of its lease
    PRIMARY KEY (tenant_id, id)
) WITHOUT ROWID;
