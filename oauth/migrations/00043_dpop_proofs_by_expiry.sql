-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS dpop_proofs_by_expiry ON dpop_proofs (expires_at);
