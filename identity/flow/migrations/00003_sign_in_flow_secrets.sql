-- +goose NO TRANSACTION
-- +goose Up
-- The signing secrets of actions.
CREATE TABLE IF NOT EXISTS sign_in_flow_secrets (
    tenant_id           TEXT   NOT NULL,
    action              TEXT   NOT NULL,
    secret              BYTEA  NOT NULL, -- sealed
    previous_secret     BYTEA  NOT NULL, -- sealed; empty: none
    previous_expires_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, action)
);
