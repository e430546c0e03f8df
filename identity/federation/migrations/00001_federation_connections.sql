-- +goose NO TRANSACTION
-- +goose Up
-- Instants are microseconds since 1970, settings and metadata are JSON.
CREATE TABLE IF NOT EXISTS federation_connections (
    tenant_id     TEXT   NOT NULL,
    id            TEXT   NOT NULL,
    slug          TEXT   NOT NULL,
    kind          TEXT   NOT NULL,
    name          TEXT   NOT NULL,
    state         TEXT   NOT NULL,
    settings      TEXT   NOT NULL,
    client_secret BYTEA  NOT NULL, -- sealed, as the private key; empty: none
    private_key   BYTEA  NOT NULL,
    metadata      TEXT   NOT NULL, -- what the provider publishes
    metadata_xml  TEXT   NOT NULL, -- as it was sent; empty: it was not
    check_at      BIGINT NOT NULL, -- when the metadata is due
    warned_at     BIGINT NOT NULL, -- the end of the certificate about which there was an event
    version       BIGINT NOT NULL, -- counts changes
    created_at    BIGINT NOT NULL,
    updated_at    BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
