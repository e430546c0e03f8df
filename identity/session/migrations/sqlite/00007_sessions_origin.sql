-- +goose NO TRANSACTION
-- +goose Up
-- What the session was opened from: a session of the control plane, its user and the organisation,
-- separated by spaces; empty: the user signed in here.
ALTER TABLE sessions ADD COLUMN origin TEXT NOT NULL DEFAULT '';
