-- +goose NO TRANSACTION
-- +goose Up
CREATE TABLE IF NOT EXISTS user_import_errors (
    tenant_id TEXT   NOT NULL,
    import_id TEXT   NOT NULL,
    line      BIGINT NOT NULL,
    email     TEXT   NOT NULL,
    code      TEXT   NOT NULL,
    message   TEXT   NOT NULL,
    PRIMARY KEY (tenant_id, import_id, line)
) WITHOUT ROWID;
