-- +goose NO TRANSACTION
-- +goose Up
-- The texts of mails that tenants have replaced, as JSON.
CREATE TABLE IF NOT EXISTS mail_templates (
    tenant_id  TEXT   NOT NULL,
    mail       TEXT   NOT NULL,
    language   TEXT   NOT NULL,
    template   TEXT   NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, mail, language)
) WITHOUT ROWID;
