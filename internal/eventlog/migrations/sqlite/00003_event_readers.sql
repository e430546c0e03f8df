-- +goose NO TRANSACTION
-- +goose Up
-- The position of each reader in the tenant's log: it has handled the events up
-- to it.
CREATE TABLE IF NOT EXISTS event_readers (
    reader    TEXT   NOT NULL,
    tenant_id TEXT   NOT NULL,
    position  BIGINT NOT NULL,
    PRIMARY KEY (reader, tenant_id)
) WITHOUT ROWID;
