-- +goose NO TRANSACTION
-- +goose Up
-- Sessions that were ended, until applications are notified.
CREATE TABLE IF NOT EXISTS ended_sessions (
    tenant_id TEXT NOT NULL,
    id        TEXT NOT NULL,
    user_id   TEXT NOT NULL,
    PRIMARY KEY (tenant_id, id)
) WITHOUT ROWID;
