-- +goose NO TRANSACTION
-- +goose Up
-- Keys from before they rotated were active from the first.
UPDATE signing_keys SET activated_at = created_at WHERE activated_at = 0 AND state = 'active';
