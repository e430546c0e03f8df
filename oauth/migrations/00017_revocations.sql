-- +goose NO TRANSACTION
-- +goose Up
-- What counts no longer: access tokens, applications and keys with all of theirs, until the
-- last of the tokens would have expired. Instants are microseconds since 1970.
CREATE TABLE IF NOT EXISTS revocations (
    tenant_id  TEXT   NOT NULL,
    kind       TEXT   NOT NULL, -- token, client or key
    id         TEXT   NOT NULL, -- jti, client_id or kid
    changed_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, kind, id)
);
