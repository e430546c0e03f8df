-- +goose NO TRANSACTION
-- +goose Up
-- Sessions that somebody ended, until those who have to know are told.
CREATE TABLE IF NOT EXISTS ended_sessions (
    tenant_id TEXT NOT NULL,
    id        TEXT NOT NULL,
    user_id   TEXT NOT NULL,
    PRIMARY KEY (tenant_id, id)
);
