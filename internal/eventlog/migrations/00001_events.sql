-- +goose NO TRANSACTION
-- +goose Up
-- What happened in a tenant, in the order in which it was committed. Instants
-- are in microseconds since 1970; origin and data are JSON objects; revision is the newest
-- revision of the tenant's relations at the event.
CREATE TABLE IF NOT EXISTS events (
    tenant_id   TEXT   NOT NULL,
    position    BIGINT NOT NULL,
    id          TEXT   NOT NULL,
    type        TEXT   NOT NULL,
    occurred_at BIGINT NOT NULL,
    origin      TEXT   NOT NULL,
    data        TEXT   NOT NULL,
    revision    BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, position)
);
