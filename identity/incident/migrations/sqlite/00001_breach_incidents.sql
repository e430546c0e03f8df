-- +goose NO TRANSACTION
-- +goose Up
-- What happened, and its state. Times are in microseconds since 1970; closed_at is 0 while it is open.
CREATE TABLE IF NOT EXISTS breach_incidents (
    tenant_id      TEXT    NOT NULL,
    id             TEXT    NOT NULL,
    title          TEXT    NOT NULL,
    description    TEXT    NOT NULL,
    severity       TEXT    NOT NULL,
    assignee_id    TEXT    NOT NULL, -- of a user; empty: nobody
    all_users      BOOLEAN NOT NULL,
    affected       BIGINT  NOT NULL, -- rows of breach_affected_users
    resolution     TEXT    NOT NULL,
    opened_at      BIGINT  NOT NULL,
    opened_by_type TEXT    NOT NULL,
    opened_by      TEXT    NOT NULL,
    updated_at     BIGINT  NOT NULL,
    closed_at      BIGINT  NOT NULL,
    PRIMARY KEY (tenant_id, id)
) WITHOUT ROWID;
