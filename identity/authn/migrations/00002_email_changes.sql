-- +goose NO TRANSACTION
-- +goose Up
-- Changes of users' addresses. Instants are microseconds since 1970.
CREATE TABLE IF NOT EXISTS email_changes (
    tenant_id  TEXT    NOT NULL,
    user_id    TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    new_email  TEXT    NOT NULL,
    verified   BOOLEAN NOT NULL,
    created_at BIGINT  NOT NULL,
    expires_at BIGINT  NOT NULL,
    PRIMARY KEY (tenant_id, user_id, id)
);
