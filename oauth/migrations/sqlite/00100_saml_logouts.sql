-- +goose NO TRANSACTION
-- +goose Up
-- Requests of single logout that SAML service providers have not answered, by the hash of their
-- RelayState. Each is answered once. Expired rows are deleted. Instants are microseconds since 1970.
CREATE TABLE IF NOT EXISTS saml_logouts (
    tenant_id  TEXT   NOT NULL,
    id         TEXT   NOT NULL,
    logout     BLOB   NOT NULL, -- sealed: the request, and the rest of the sign-out
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, id)
) WITHOUT ROWID;
