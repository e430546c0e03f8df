-- +goose NO TRANSACTION
-- +goose Up
-- What tenants decided about their applications and tokens, as a JSON object.
CREATE TABLE IF NOT EXISTS oauth_settings (
    tenant_id TEXT NOT NULL,
    settings  TEXT NOT NULL,
    PRIMARY KEY (tenant_id)
);
