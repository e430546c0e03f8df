-- +goose NO TRANSACTION
-- +goose Up
-- The sessions at federation connections from which sessions of the product began. Instants
-- are microseconds since 1970.
CREATE TABLE IF NOT EXISTS external_sessions (
    tenant_id     TEXT   NOT NULL,
    session_id    TEXT   NOT NULL, -- of the product
    connection_id TEXT   NOT NULL,
    subject       TEXT   NOT NULL,
    provider_id   TEXT   NOT NULL, -- sid or SessionIndex; empty: none
    hint          BLOB   NOT NULL, -- sealed: the ID token or the NameID
    expires_at    BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, session_id)
) WITHOUT ROWID;
