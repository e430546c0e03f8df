-- +goose Up
-- The changelog as a table with row IDs. Rows of a table WITHOUT ROWID are keys of an index, and a
-- search reads each key that it compares with all of its overflow pages: the changes of a bulk load
-- are hundreds of KiB. The columns and their order stay, so older releases can use the table.
CREATE TABLE tenant_commits_copy (
    tenant_id     TEXT   NOT NULL,
    rev           BIGINT NOT NULL,
    actor         TEXT   NOT NULL,
    committed_at  BIGINT NOT NULL,
    changes       TEXT   NOT NULL,
    event         TEXT   NOT NULL DEFAULT '',
    commit_events BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, rev)
);
INSERT INTO tenant_commits_copy SELECT * FROM tenant_commits;
DROP TABLE tenant_commits;
ALTER TABLE tenant_commits_copy RENAME TO tenant_commits;
