-- +goose NO TRANSACTION
-- +goose Up
-- What is to be done after commit. Instants are microseconds since 1970.
CREATE TABLE IF NOT EXISTS outbox (
    tenant_id  TEXT   NOT NULL,
    id         TEXT   NOT NULL,
    kind       TEXT   NOT NULL,
    payload    BYTEA  NOT NULL, -- sealed
    attempts   BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    due_at     BIGINT NOT NULL, -- while it is worked on: when others may
    PRIMARY KEY (tenant_id, id)
);
