-- +goose NO TRANSACTION
-- +goose Up
-- Requests that carry an idempotency key. status is 0 until there is a response;
-- instants are in microseconds since 1970. shard spreads the index by expiry.
CREATE TABLE IF NOT EXISTS idempotency_keys (
    tenant_id    TEXT   NOT NULL,
    scope_hash   BYTEA  NOT NULL, -- SHA-256 of caller, operation and key
    request_hash BYTEA  NOT NULL, -- SHA-256 of the content of the request
    commit_id    TEXT   NOT NULL, -- the same for every attempt
    holder       TEXT   NOT NULL, -- the attempt under way
    lease_until  BIGINT NOT NULL,
    status       BIGINT NOT NULL,
    response     BYTEA  NOT NULL, -- sealed for (tenant_id, scope_hash)
    shard        BIGINT NOT NULL,
    expires_at   BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, scope_hash)
);
