-- +goose NO TRANSACTION
-- +goose Up
-- The signing secrets of actions.
CREATE TABLE IF NOT EXISTS sign_in_flow_secrets (
    tenant_id           TEXT   NOT NULL,
    action              TEXT   NOT NULL,
    secret              BLOB   NOT NULL, -- sealed
    previous_secret     BLOB   NOT NULL, -- sealed; empty: none
    previous_expires_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, action)
) WITHOUT ROWID;
