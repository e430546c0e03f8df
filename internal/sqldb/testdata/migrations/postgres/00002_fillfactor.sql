-- +goose NO TRANSACTION
-- +goose Up
ALTER TABLE accounts SET (fillfactor = 50);
