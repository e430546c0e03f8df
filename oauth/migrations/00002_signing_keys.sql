-- +goose NO TRANSACTION
-- +goose Up
CREATE TABLE IF NOT EXISTS signing_keys (
    tenant_id      TEXT   NOT NULL,
    kid            TEXT   NOT NULL, -- RFC 7638 thumbprint
    alg            TEXT   NOT NULL, -- ES256, RS256
    state          TEXT   NOT NULL, -- active
    private_sealed BYTEA  NOT NULL, -- PKCS #8 sealed, for (tenant_id, kid)
    created_at     BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, kid)
);
