-- +goose NO TRANSACTION
-- +goose Up
-- Authorization codes, by their hashes.
CREATE TABLE IF NOT EXISTS codes (
    tenant_id    TEXT   NOT NULL,
    hash         TEXT   NOT NULL,
    grant_id     TEXT   NOT NULL,
    client_id    TEXT   NOT NULL,
    redirect_uri TEXT   NOT NULL,
    challenge    TEXT   NOT NULL, -- RFC 7636, S256
    expires_at   BIGINT NOT NULL,
    used_at      BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, hash)
) WITHOUT ROWID;
