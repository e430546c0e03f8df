-- +goose NO TRANSACTION
-- +goose Up
-- Lists of addresses and domains. Times are in microseconds since 1970, 0 for never. The list of version
-- n is the rows of threat_lists with it; version 0 has none.
CREATE TABLE IF NOT EXISTS threat_feeds (
    tenant_id     TEXT    NOT NULL,
    id            TEXT    NOT NULL,
    kind          TEXT    NOT NULL,
    source        TEXT    NOT NULL,
    name          TEXT    NOT NULL,
    url           TEXT    NOT NULL, -- empty: entries are uploaded
    mode          TEXT    NOT NULL,
    enabled       BOOLEAN NOT NULL,
    refresh_s     BIGINT  NOT NULL,
    entries       BIGINT  NOT NULL,
    bad_lines     BIGINT  NOT NULL,
    first_bad     TEXT    NOT NULL, -- numbers, separated by commas
    listed_at     BIGINT  NOT NULL,
    checked_at    BIGINT  NOT NULL,
    failing_at    BIGINT  NOT NULL,
    failure       TEXT    NOT NULL,
    requested_at  BIGINT  NOT NULL,
    version       BIGINT  NOT NULL,
    chunks        BIGINT  NOT NULL, -- rows of the list
    digest        TEXT    NOT NULL, -- of the list
    etag          TEXT    NOT NULL,
    last_modified TEXT    NOT NULL,
    check_at      BIGINT  NOT NULL, -- when the list is due to be fetched
    created_at    BIGINT  NOT NULL,
    updated_at    BIGINT  NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
