-- +goose NO TRANSACTION
-- +goose Up
CREATE TABLE IF NOT EXISTS webhook_dead_letters (
    tenant_id            TEXT   NOT NULL,
    subscription_id      TEXT   NOT NULL,
    id                   TEXT   NOT NULL,
    delivery_id          TEXT   NOT NULL,
    event_id             TEXT   NOT NULL,
    event_type           TEXT   NOT NULL,
    event                TEXT   NOT NULL, -- the body
    reason               TEXT   NOT NULL,
    state                TEXT   NOT NULL,
    history              TEXT   NOT NULL,
    last_response        TEXT   NOT NULL,
    dead_lettered_at     BIGINT NOT NULL,
    expires_at           BIGINT NOT NULL, -- by the clock of the lane
    replayed_delivery_id TEXT   NOT NULL,
    dropped_by           TEXT   NOT NULL,
    dropped_at           BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, subscription_id, id)
);
