-- +goose NO TRANSACTION
-- +goose Up
-- The state of GCRA limiters: the theoretical arrival time of the next request,
-- in nanoseconds since 1970. An expired row has no meaning.
CREATE TABLE IF NOT EXISTS rate_limits (
    tenant_id  TEXT   NOT NULL,
    bucket     TEXT   NOT NULL,
    arrival    BIGINT NOT NULL,
    shard      BIGINT NOT NULL,
    expires_at BIGINT NOT NULL, -- microseconds since 1970
    PRIMARY KEY (tenant_id, bucket)
);
