-- +goose NO TRANSACTION
-- +goose Up
-- Who the members are, and that they hold the scopes, is tuples; both stand here once
-- more for lists, and change in the transaction that changes the tuples.
CREATE TABLE IF NOT EXISTS user_groups (
    tenant_id    TEXT   NOT NULL,
    id           TEXT   NOT NULL,
    slug         TEXT   NOT NULL,
    name         TEXT   NOT NULL,
    description  TEXT   NOT NULL,
    search       TEXT   NOT NULL, -- slug, name and description, folded
    scopes       TEXT   NOT NULL, -- separated by spaces
    member_count BIGINT NOT NULL,
    created_at   BIGINT NOT NULL, -- microseconds since 1970
    updated_at   BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
