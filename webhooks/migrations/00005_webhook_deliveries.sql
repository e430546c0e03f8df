-- +goose NO TRANSACTION
-- +goose Up
-- Ids are ordered by time, so that rows are added at the end of their subscription.
CREATE TABLE IF NOT EXISTS webhook_deliveries (
    tenant_id       TEXT   NOT NULL,
    subscription_id TEXT   NOT NULL,
    id              TEXT   NOT NULL,
    position        BIGINT NOT NULL, -- of the event in the log of the tenant
    event_id        TEXT   NOT NULL,
    event_type      TEXT   NOT NULL,
    event           TEXT   NOT NULL, -- the body, if it is not made from the log
    operations      TEXT   NOT NULL, -- the visible operations of a bulk write; empty: all
    size            BIGINT NOT NULL, -- of the data of the event, in bytes
    status          TEXT   NOT NULL,
    attempts        BIGINT NOT NULL, -- finished
    history         TEXT   NOT NULL, -- of the attempts
    last_response   TEXT   NOT NULL, -- empty: none
    due_at          BIGINT NOT NULL, -- by the clock of the lane; 0: there is no further attempt
    created_at      BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, subscription_id, id)
);
