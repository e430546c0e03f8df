-- +goose NO TRANSACTION
-- +goose Up
-- The tuples that exist now. Objects and subjects are type:id; few columns are compared fast, and
-- a type has no colon. A presence has an empty relation and subject; a tuple without terms has an
-- empty condition and context and expires at 0. created_at and expires_at are in microseconds
-- since 1970.
CREATE TABLE IF NOT EXISTS tuples (
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
    PRIMARY KEY (tenant_number, object, relation, subject, subject_relation)
) WITHOUT ROWID;
