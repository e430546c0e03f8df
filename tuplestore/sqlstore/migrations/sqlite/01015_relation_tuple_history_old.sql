-- +goose Up
ALTER TABLE relation_tuple_history RENAME TO relation_tuple_history_old;
