-- +goose NO TRANSACTION
-- +goose Up
CREATE TABLE IF NOT EXISTS applications (
    tenant_id            TEXT   NOT NULL,
    client_id            TEXT   NOT NULL,
    id                   TEXT   NOT NULL,
    name                 TEXT   NOT NULL,
    type                 TEXT   NOT NULL, -- spa, native, m2m, server
    state                TEXT   NOT NULL, -- enabled, disabled
    allowed_scopes       TEXT   NOT NULL, -- separated by spaces
    audience             TEXT   NOT NULL, -- '' for the tenant's base URL
    access_token_ttl_s   BIGINT NOT NULL,
    signing_alg          TEXT   NOT NULL, -- ES256, RS256
    secret_hash          BYTEA  NOT NULL, -- SHA-256; 32 zero bytes when there is none
    previous_secret_hash BYTEA  NOT NULL,
    previous_expires_at  BIGINT NOT NULL, -- microseconds since 1970, as every instant
    created_at           BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, client_id),
    UNIQUE (tenant_id, id)
);
