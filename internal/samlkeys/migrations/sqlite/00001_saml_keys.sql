-- +goose NO TRANSACTION
-- +goose Up
-- The keys of tenants for SAML. Instants are microseconds since 1970; 0 is never.
CREATE TABLE IF NOT EXISTS saml_keys (
    tenant_id      TEXT   NOT NULL,
    key_use        TEXT   NOT NULL, -- service_provider, identity_provider
    id             TEXT   NOT NULL, -- SHA-256 of the certificate, in hexadecimal
    state          TEXT   NOT NULL, -- next, active, retired
    private_sealed BLOB   NOT NULL, -- PKCS #8 sealed, for (tenant_id, id)
    certificate    BLOB   NOT NULL, -- DER
    created_at     BIGINT NOT NULL,
    activated_at   BIGINT NOT NULL,
    retired_at     BIGINT NOT NULL,
    due_at         BIGINT NOT NULL, -- when the next step of the rotation is due
    PRIMARY KEY (tenant_id, key_use, id)
) WITHOUT ROWID;
