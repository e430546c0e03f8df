-- +goose NO TRANSACTION
-- +goose Up
-- Applications of the system tenant in organisations. Their roles are relations.
CREATE TABLE IF NOT EXISTS service_accounts (
    org_id     TEXT   NOT NULL,
    id         TEXT   NOT NULL, -- of the application
    client_id  TEXT   NOT NULL,
    name       TEXT   NOT NULL,
    created_by TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (org_id, id)
);
