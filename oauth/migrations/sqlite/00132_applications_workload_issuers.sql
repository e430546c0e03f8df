-- +goose NO TRANSACTION
-- +goose Up
-- The ids of the trusted issuers of its workload identities, separated by spaces.
ALTER TABLE applications ADD COLUMN workload_issuers TEXT NOT NULL DEFAULT '';
