-- +goose NO TRANSACTION
-- +goose Up
CREATE TABLE IF NOT EXISTS assertion_sets (
    tenant_id  TEXT NOT NULL,
    name       TEXT NOT NULL,
    document   TEXT NOT NULL,
    assertions BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, name)
);
