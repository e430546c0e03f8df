-- +goose Up
-- The claims about the user that were requested by their names (OIDC Core §5.5), as JSON; empty: none.
ALTER TABLE grants ADD COLUMN requested_claims TEXT NOT NULL DEFAULT '';
