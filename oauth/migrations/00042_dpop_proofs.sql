-- +goose NO TRANSACTION
-- +goose Up
-- Proofs of possession that came (RFC 9449 §11.1), for as long as they could come again.
-- Instants are microseconds since 1970.
CREATE TABLE IF NOT EXISTS dpop_proofs (
    tenant_id  TEXT   NOT NULL,
    replay_key TEXT   NOT NULL, -- hash of the key's thumbprint and jti
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, replay_key)
);
