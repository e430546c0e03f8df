-- +goose NO TRANSACTION
-- +goose Up
-- The newest position of each tenant. Updating a row is the lock that orders the
-- tenant's writers. Reads below min_rev are refused: history may be missing.
CREATE TABLE IF NOT EXISTS tenant_heads (
    tenant_id  TEXT   NOT NULL,
    epoch      TEXT   NOT NULL,
    rev        BIGINT NOT NULL,
    schema_rev BIGINT NOT NULL,
    min_rev    BIGINT NOT NULL,
    PRIMARY KEY (tenant_id)
) WITHOUT ROWID;
