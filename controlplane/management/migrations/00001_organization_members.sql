-- +goose NO TRANSACTION
-- +goose Up
-- Users of the system tenant in organisations. Their roles are relations. Instants are in
-- microseconds since 1970.
CREATE TABLE IF NOT EXISTS organization_members (
    org_id     TEXT   NOT NULL,
    id         TEXT   NOT NULL,
    user_id    TEXT   NOT NULL,
    invited_by TEXT   NOT NULL, -- id of a user or application; '' for the first owner
    joined_at  BIGINT NOT NULL,
    PRIMARY KEY (org_id, id)
);
