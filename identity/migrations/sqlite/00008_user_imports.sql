-- +goose NO TRANSACTION
-- +goose Up
-- Jobs that import users. Rows that are not yet imported are in chunks; those before
-- next_chunk are done. A process works on a job while its lease lasts. Instants are
-- microseconds since 1970, 0 is none.
CREATE TABLE IF NOT EXISTS user_imports (
    tenant_id   TEXT   NOT NULL,
    id          TEXT   NOT NULL,
    state       TEXT   NOT NULL, -- receiving, queued, running, completed, cancelled
    origin      TEXT   NOT NULL, -- who asked for it, as JSON
    caller      TEXT   NOT NULL, -- whose rights it has, as JSON; empty: those of the product
    total       BIGINT NOT NULL,
    imported    BIGINT NOT NULL,
    failed      BIGINT NOT NULL,
    chunks      BIGINT NOT NULL,
    next_chunk  BIGINT NOT NULL,
    owner       TEXT   NOT NULL,
    lease_until BIGINT NOT NULL,
    created_at  BIGINT NOT NULL,
    started_at  BIGINT NOT NULL,
    finished_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, id)
) WITHOUT ROWID;
