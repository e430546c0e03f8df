-- +goose NO TRANSACTION
-- +goose Up
-- The messages to affected users. Those up to after_user have been notified.
CREATE TABLE IF NOT EXISTS breach_notifications (
    tenant_id       TEXT   NOT NULL,
    incident_id     TEXT   NOT NULL,
    id              TEXT   NOT NULL,
    subject         TEXT   NOT NULL,
    message         TEXT   NOT NULL,
    created_at      BIGINT NOT NULL,
    created_by_type TEXT   NOT NULL,
    created_by      TEXT   NOT NULL,
    after_user      TEXT   NOT NULL,
    mails           BIGINT NOT NULL,
    finished_at     BIGINT NOT NULL, -- 0: not yet
    PRIMARY KEY (tenant_id, incident_id, id)
) WITHOUT ROWID;
