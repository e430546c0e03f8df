-- +goose NO TRANSACTION
-- +goose Up
CREATE TABLE IF NOT EXISTS users (
    tenant_id      TEXT    NOT NULL,
    id             TEXT    NOT NULL,
    email          TEXT    NOT NULL,
    email_norm     TEXT    NOT NULL, -- folded for comparison
    email_verified BOOLEAN NOT NULL,
    name           TEXT    NOT NULL,
    password_hash  TEXT    NOT NULL, -- PHC string; '' when there is no password
    created_at     BIGINT  NOT NULL, -- microseconds since 1970
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, email_norm)
);
