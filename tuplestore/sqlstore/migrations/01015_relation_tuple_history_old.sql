-- +goose NO TRANSACTION
-- +goose Up
ALTER TABLE IF EXISTS relation_tuple_history RENAME TO relation_tuple_history_old;
