-- +goose NO TRANSACTION
-- +goose Up
CREATE TABLE IF NOT EXISTS organization_invitations (
    org_id      TEXT   NOT NULL,
    id          TEXT   NOT NULL,
    email       TEXT   NOT NULL, -- as entered
    email_norm  TEXT   NOT NULL, -- for comparisons
    role        TEXT   NOT NULL,
    state       TEXT   NOT NULL,
    token_hash  TEXT   NOT NULL, -- of the link that was sent last; '' before the first mail
    invited_by  TEXT   NOT NULL,
    created_at  BIGINT NOT NULL,
    expires_at  BIGINT NOT NULL,
    accepted_at BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (org_id, id)
);
