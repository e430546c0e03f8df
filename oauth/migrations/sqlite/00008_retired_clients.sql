-- +goose NO TRANSACTION
-- +goose Up
-- Client ids of deleted applications, which are never assigned again.
CREATE TABLE IF NOT EXISTS retired_clients (
    tenant_id  TEXT   NOT NULL,
    client_id  TEXT   NOT NULL,
    retired_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, client_id)
) WITHOUT ROWID;
