-- +goose NO TRANSACTION
-- +goose Up
-- The newest position of each tenant's log, whose row orders the writers, the
-- floor: events up to it are no longer kept, and the revision of the newest event.
CREATE TABLE IF NOT EXISTS event_heads (
    tenant_id TEXT   NOT NULL PRIMARY KEY,
    position  BIGINT NOT NULL,
    floor     BIGINT NOT NULL DEFAULT 0,
    revision  BIGINT NOT NULL DEFAULT 0
) WITHOUT ROWID;
