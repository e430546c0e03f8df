-- +goose NO TRANSACTION
-- +goose Up
-- Lines of an import, encrypted, for there are passwords in them.
CREATE TABLE IF NOT EXISTS user_import_chunks (
    tenant_id TEXT   NOT NULL,
    import_id TEXT   NOT NULL,
    chunk     BIGINT NOT NULL,
    sealed    BLOB  NOT NULL,
    PRIMARY KEY (tenant_id, import_id, chunk)
) WITHOUT ROWID;
