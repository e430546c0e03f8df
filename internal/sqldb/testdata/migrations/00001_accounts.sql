-- +goose NO TRANSACTION
-- +goose Up
CREATE TABLE IF NOT EXISTS accounts (name TEXT NOT NULL, balance BIGINT NOT NULL, PRIMARY KEY (name));
