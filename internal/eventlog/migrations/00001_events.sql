-- +goose NO TRANSACTION
-- +goose Up
-- What happened in a tenant, in the order in which it was committed. Instants
-- are in microseconds since 1970; data is a JSON object.
CREATE TABLE IF NOT EXISTS events (
    tenant_id   TEXT   NOT NULL,
    position    BIGINT NOT NULL,
    id          TEXT   NOT NULL,
    type        TEXT   NOT NULL,
    occurred_at BIGINT NOT NULL,
    actor_type  TEXT   NOT NULL,
    actor_id    TEXT   NOT NULL,
    client_id   TEXT   NOT NULL,
    request_id  TEXT   NOT NULL,
    client_ip   TEXT   NOT NULL,
    data        TEXT   NOT NULL,
    PRIMARY KEY (tenant_id, position)
);
