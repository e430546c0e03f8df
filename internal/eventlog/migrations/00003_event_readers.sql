-- +goose NO TRANSACTION
-- +goose Up
-- How far each reader of a tenant's log has come.
CREATE TABLE IF NOT EXISTS event_readers (
    tenant_id TEXT   NOT NULL,
    reader    TEXT   NOT NULL,
    position  BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, reader)
);
