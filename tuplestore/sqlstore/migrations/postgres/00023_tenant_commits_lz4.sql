-- +goose NO TRANSACTION
-- +goose Up
-- +goose StatementBegin
-- The changes and the event of a bulk write are tens of KiB of JSON, which LZ4 compresses faster than
-- PostgreSQL's own method. A server without LZ4 (before version 14, or built without it) keeps its own
-- method. What is stored already stays as it is.
DO $$
BEGIN
    EXECUTE 'ALTER TABLE tenant_commits ALTER COLUMN changes SET COMPRESSION lz4, ALTER COLUMN event SET COMPRESSION lz4';
EXCEPTION
    WHEN feature_not_supported OR syntax_error THEN NULL;
END
$$;
-- +goose StatementEnd
