-- +goose NO TRANSACTION
-- +goose Up
DROP TABLE IF EXISTS relation_tuple_history_old;
