-- +goose NO TRANSACTION
-- +goose Up
-- For discovery, which lists the names of all applications.
CREATE INDEX IF NOT EXISTS applications_by_claim_names ON applications (tenant_id, claim_names) WHERE claim_names <> '';
