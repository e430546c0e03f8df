-- +goose NO TRANSACTION
-- +goose Up
-- The ids that provisioning clients give to users and groups.
CREATE TABLE IF NOT EXISTS external_ids (
    tenant_id   TEXT NOT NULL,
    object_id   TEXT NOT NULL, -- of a user or a group
    client_id   TEXT NOT NULL,
    external_id TEXT NOT NULL,
    PRIMARY KEY (tenant_id, object_id, client_id)
) WITHOUT ROWID;
