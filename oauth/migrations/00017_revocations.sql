-- +goose NO TRANSACTION
-- +goose Up
-- Access tokens, and applications with all of theirs, that count no longer, or again, until
-- the last of the tokens has expired. Instants are microseconds since 1970.
CREATE TABLE IF NOT EXISTS revocations (
    tenant_id  TEXT   NOT NULL,
    kind       TEXT   NOT NULL, -- token or client
    id         TEXT   NOT NULL, -- jti or client_id
    revoked    BIGINT NOT NULL, -- 1: they do not count; 0: they do again
    changed_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, kind, id)
);
