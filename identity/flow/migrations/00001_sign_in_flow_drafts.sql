-- +goose NO TRANSACTION
-- +goose Up
-- The draft of a tenant. Documents are JSON, times are in microseconds since 1970.
CREATE TABLE IF NOT EXISTS sign_in_flow_drafts (
    tenant_id       TEXT   NOT NULL,
    revision        TEXT   NOT NULL, -- random
    document        TEXT   NOT NULL,
    updated_at      BIGINT NOT NULL,
    updated_by_type TEXT   NOT NULL,
    updated_by      TEXT   NOT NULL,
    PRIMARY KEY (tenant_id)
);
