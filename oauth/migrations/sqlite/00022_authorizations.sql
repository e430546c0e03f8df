-- +goose Up
-- What is remembered of users and applications: that the one has signed in to the other,
-- and the scopes of the consent. Instants are microseconds since 1970.
CREATE TABLE IF NOT EXISTS authorizations (
    tenant_id  TEXT   NOT NULL,
    user_id    TEXT   NOT NULL,
    client_id  TEXT   NOT NULL,
    scopes     TEXT   NOT NULL, -- that the user has consented to, separated by spaces
    created_at BIGINT NOT NULL,
    used_at    BIGINT NOT NULL, -- when the user was last sent back to the application
    PRIMARY KEY (tenant_id, user_id, client_id)
) WITHOUT ROWID;
