-- +goose NO TRANSACTION
-- +goose Up
-- Imports of users. Rows that are not yet imported are in chunks; the chunks before
-- next_chunk are imported. Instants are microseconds since 1970, 0 is none.
CREATE TABLE IF NOT EXISTS user_imports (
    tenant_id   TEXT   NOT NULL,
    id          TEXT   NOT NULL,
    state       TEXT   NOT NULL, -- receiving, queued, running, completed, cancelled
    origin      TEXT   NOT NULL, -- of the request, as JSON
    caller      TEXT   NOT NULL, -- the import has its rights; JSON, empty: the product
    total       BIGINT NOT NULL,
    imported    BIGINT NOT NULL,
    failed      BIGINT NOT NULL,
    chunks      BIGINT NOT NULL,
    next_chunk  BIGINT NOT NULL,
    created_at  BIGINT NOT NULL,
    started_at  BIGINT NOT NULL,
    finished_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, id)
) WITHOUT ROWID;
