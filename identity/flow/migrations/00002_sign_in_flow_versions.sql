-- +goose NO TRANSACTION
-- +goose Up
-- What was published. The settings of the tenant name the active version.
CREATE TABLE IF NOT EXISTS sign_in_flow_versions (
    tenant_id         TEXT   NOT NULL,
    version           BIGINT NOT NULL,
    document          TEXT   NOT NULL,
    note              TEXT   NOT NULL,
    restored_from     BIGINT NOT NULL, -- the version that was rolled back to; 0: none
    published_at      BIGINT NOT NULL,
    published_by_type TEXT   NOT NULL,
    published_by      TEXT   NOT NULL,
    PRIMARY KEY (tenant_id, version)
);
