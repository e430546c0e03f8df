-- +goose NO TRANSACTION
-- +goose Up
-- Authorization requests whose users are signing in, by the hash of their secret. Instants
-- are microseconds since 1970.
CREATE TABLE IF NOT EXISTS authorization_requests (
    tenant_id  TEXT   NOT NULL,
    id         TEXT   NOT NULL,
    request    TEXT   NOT NULL, -- JSON
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
