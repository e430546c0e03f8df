-- +goose NO TRANSACTION
-- +goose Up
-- The tuples that existed, on these terms, from created_rev until just before
-- deleted_rev. Apart from the live ones, so that these stay compact.
CREATE TABLE IF NOT EXISTS tuple_history (
    tenant_number    BIGINT NOT NULL,
    object           TEXT   NOT NULL,
    relation         TEXT   NOT NULL,
    subject          TEXT   NOT NULL,
    subject_relation TEXT   NOT NULL,
    condition        TEXT   NOT NULL,
    context          TEXT   NOT NULL,
    expires_at       BIGINT NOT NULL,
    created_rev      BIGINT NOT NULL,
    created_at       BIGINT NOT NULL,
    created_by       TEXT   NOT NULL,
    deleted_rev      BIGINT NOT NULL,
    PRIMARY KEY (tenant_number, object, relation, subject, subject_relation, created_rev)
) WITHOUT ROWID;
