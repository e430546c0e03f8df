-- +goose NO TRANSACTION
-- +goose Up
-- The users that incidents affect.
CREATE TABLE IF NOT EXISTS breach_affected_users (
    tenant_id   TEXT   NOT NULL,
    incident_id TEXT   NOT NULL,
    user_id     TEXT   NOT NULL,
    added_at    BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, incident_id, user_id)
);
