-- +goose NO TRANSACTION
-- +goose Up
-- What a search looks through, folded, in the order of lists.
CREATE TABLE IF NOT EXISTS user_search (
    tenant_id  TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    user_id    TEXT   NOT NULL,
    text       TEXT   NOT NULL,
    PRIMARY KEY (tenant_id, created_at, user_id)
);
