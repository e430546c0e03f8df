-- +goose NO TRANSACTION
-- +goose Up
-- Who users are at federation connections. Instants are microseconds since 1970; 0 is
-- never.
CREATE TABLE IF NOT EXISTS external_identities (
    tenant_id     TEXT   NOT NULL,
    connection_id TEXT   NOT NULL,
    subject       TEXT   NOT NULL, -- as the provider calls the person
    user_id       TEXT   NOT NULL,
    slug          TEXT   NOT NULL, -- of the connection, as is kind
    kind          TEXT   NOT NULL,
    email         TEXT   NOT NULL, -- for display; empty: unknown
    linked_at     BIGINT NOT NULL,
    last_used_at  BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, connection_id, subject)
) WITHOUT ROWID;
