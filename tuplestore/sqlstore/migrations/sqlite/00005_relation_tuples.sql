-- +goose NO TRANSACTION
-- +goose Up
-- The tuples that exist now. A presence has an empty relation and subject; a
-- tuple without terms has an empty condition and context and expires at 0.
-- created_at and expires_at are in microseconds since 1970.
CREATE TABLE IF NOT EXISTS relation_tuples (
    tenant_id        TEXT   NOT NULL,
    object_type      TEXT   NOT NULL,
    object_id        TEXT   NOT NULL,
    relation         TEXT   NOT NULL,
    subject_type     TEXT   NOT NULL,
    subject_id       TEXT   NOT NULL,
    subject_relation TEXT   NOT NULL,
    condition        TEXT   NOT NULL,
    context          TEXT   NOT NULL,
    expires_at       BIGINT NOT NULL,
    created_rev      BIGINT NOT NULL,
    created_at       BIGINT NOT NULL,
    created_by       TEXT   NOT NULL,
    PRIMARY KEY (tenant_id, object_type, object_id, relation, subject_type, subject_id, subject_relation)
) WITHOUT ROWID;
