-- +goose NO TRANSACTION
-- +goose Up
-- The changelog: one row per revision, without gaps. committed_at is in
-- microseconds since 1970; changes is the net effect as JSON.
CREATE TABLE IF NOT EXISTS tenant_commits (
    tenant_id    TEXT   NOT NULL,
    rev          BIGINT NOT NULL,
    actor        TEXT   NOT NULL,
    committed_at BIGINT NOT NULL,
    changes      TEXT   NOT NULL,
    PRIMARY KEY (tenant_id, rev)
);
