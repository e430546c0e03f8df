-- +goose NO TRANSACTION
-- +goose Up
-- Tests of connections. Instants are microseconds since 1970; 0 is never.
CREATE TABLE IF NOT EXISTS federation_tests (
    tenant_id     TEXT   NOT NULL,
    id            TEXT   NOT NULL,
    connection_id TEXT   NOT NULL,
    report        BLOB   NOT NULL, -- sealed; empty: the test is not completed
    begun_at      BIGINT NOT NULL,
    expires_at    BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, id)
) WITHOUT ROWID;
