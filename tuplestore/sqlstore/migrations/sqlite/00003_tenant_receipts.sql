-- +goose NO TRANSACTION
-- +goose Up
-- What was answered to a write, for when it is sent again, or when a connection
-- broke while it was committed. Also for writes that changed nothing.
CREATE TABLE IF NOT EXISTS tenant_receipts (
    tenant_id    TEXT   NOT NULL,
    commit_id    TEXT   NOT NULL,
    request_hash BLOB  NOT NULL,
    rev          BIGINT NOT NULL,
    result       TEXT   NOT NULL,
    committed_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, commit_id)
) WITHOUT ROWID;
