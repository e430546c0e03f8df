-- +goose Up
ALTER TABLE relation_tuples RENAME TO relation_tuples_old;
