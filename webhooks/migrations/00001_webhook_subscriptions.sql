-- +goose NO TRANSACTION
-- +goose Up
-- Instants are microseconds since 1970, lists and objects are JSON.
CREATE TABLE IF NOT EXISTS webhook_subscriptions (
    tenant_id           TEXT   NOT NULL,
    id                  TEXT   NOT NULL,
    name                TEXT   NOT NULL,
    url                 TEXT   NOT NULL,
    description         TEXT   NOT NULL,
    events              TEXT   NOT NULL,
    visible_to          TEXT   NOT NULL, -- empty: no limit
    owners              TEXT   NOT NULL, -- also relations of the engine, as the viewers
    viewers             TEXT   NOT NULL,
    state               TEXT   NOT NULL,
    disabled_reason     TEXT   NOT NULL,
    secret              BYTEA  NOT NULL, -- sealed
    previous_secret     BYTEA  NOT NULL, -- sealed; empty: none
    previous_expires_at BIGINT NOT NULL,
    after_position      BIGINT NOT NULL, -- later events of the log are delivered
    until_position      BIGINT NOT NULL, -- of a disabled one: its last event; else the largest
    created_at          BIGINT NOT NULL,
    updated_at          BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
