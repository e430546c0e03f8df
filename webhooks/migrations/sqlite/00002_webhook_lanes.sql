-- +goose NO TRANSACTION
-- +goose Up
-- The deliveries of a subscription are sent by one process at a time, which holds its lane.
-- due_at of a lane is the earliest of its pending deliveries, or the largest BIGINT. The
-- instants of deliveries and dead letters are by the clock of their lane, which stops while
-- the tenant is suspended: an instant of the lane plus clock_offset is a real one.
CREATE TABLE IF NOT EXISTS webhook_lanes (
    tenant_id       TEXT    NOT NULL,
    subscription_id TEXT    NOT NULL,
    due_at          BIGINT  NOT NULL,
    holder          TEXT    NOT NULL DEFAULT '',
    lease_until     BIGINT  NOT NULL DEFAULT 0,
    clock_offset    BIGINT  NOT NULL DEFAULT 0,
    paused_at       BIGINT  NOT NULL DEFAULT 0, -- 0: the clock runs
    failing_since   BIGINT  NOT NULL DEFAULT 0, -- 0: the last attempt was successful
    failing_noted   BIGINT  NOT NULL DEFAULT 0, -- 1: there was an event about it
    last_success_at BIGINT  NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, subscription_id)
) WITHOUT ROWID;
