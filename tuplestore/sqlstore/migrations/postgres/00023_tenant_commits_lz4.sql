-- +goose NO TRANSACTION
-- +goose Up
-- +goose StatementBegin
-- The changes and the event of a bulk write are tens of KiB of JSON. LZ4 compresses them in a fifth
-- of the time of PostgreSQL's own method. A server without it (before version 14, or built without)
-- keeps its own. What is stored already stays as it is.
DO $$
BEGIN
    EXECUTE 'ALTER TABLE tenant_commits ALTER COLUMN changes SET COMPRESSION lz4, ALTER COLUMN event SET COMPRESSION lz4';
EXCEPTION
    WHEN feature_not_supported OR syntax_error THEN NULL;
END
$$;
-- +goose StatementEnd
