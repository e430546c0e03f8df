-- +goose Up
-- What an application is that is told by SAML who has signed in, as JSON; empty: it is not.
ALTER TABLE applications ADD COLUMN service_provider TEXT NOT NULL DEFAULT '';
