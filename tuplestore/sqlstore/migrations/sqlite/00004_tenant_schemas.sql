-- +goose NO TRANSACTION
-- +goose Up
-- Every version of a tenant's schema document, by the revision that put it.
CREATE TABLE IF NOT EXISTS tenant_schemas (
    tenant_id TEXT   NOT NULL,
    rev       BIGINT NOT NULL,
    document  BLOB  NOT NULL,
    PRIMARY KEY (tenant_id, rev)
) WITHOUT ROWID;
