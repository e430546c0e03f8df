-- +goose NO TRANSACTION
-- +goose Up
-- What tenants decided about their users, as a JSON object.
CREATE TABLE IF NOT EXISTS identity_settings (
    tenant_id TEXT NOT NULL,
    settings  TEXT NOT NULL,
    PRIMARY KEY (tenant_id)
);
