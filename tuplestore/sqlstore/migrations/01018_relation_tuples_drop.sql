-- +goose NO TRANSACTION
-- +goose Up
DROP TABLE IF EXISTS relation_tuples_old;
