-- +goose NO TRANSACTION
-- +goose Up
-- Second factors of users. Instants are microseconds since 1970; 0 is never.
CREATE TABLE IF NOT EXISTS factors (
    tenant_id    TEXT   NOT NULL,
    user_id      TEXT   NOT NULL,
    id           TEXT   NOT NULL,
    kind         TEXT   NOT NULL, -- totp, sms, webauthn
    label        TEXT   NOT NULL,
    secret       BLOB   NOT NULL, -- sealed: a key, a number, a credential
    last_step    BIGINT NOT NULL, -- of a key: the newest time step that was accepted
    created_at   BIGINT NOT NULL,
    last_used_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, user_id, id)
) WITHOUT ROWID;
