-- +goose NO TRANSACTION
-- +goose Up
-- Client assertions that were used (RFC 7523); each is accepted once. Expired rows are
-- deleted. Instants are microseconds since 1970.
CREATE TABLE IF NOT EXISTS client_assertions (
    tenant_id  TEXT   NOT NULL,
    hash       TEXT   NOT NULL, -- of client_id and jti
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, hash)
) WITHOUT ROWID;
