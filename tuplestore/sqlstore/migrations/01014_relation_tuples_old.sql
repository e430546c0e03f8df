-- +goose NO TRANSACTION
-- +goose Up
-- From here on, writes of a process of an older release fail. Without the new name they would be lost.
ALTER TABLE IF EXISTS relation_tuples RENAME TO relation_tuples_old;
