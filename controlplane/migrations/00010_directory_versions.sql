-- +goose NO TRANSACTION
-- +goose Up
-- A number that every change of the tenants increments, by which processes know whether what
-- they have read is current.
CREATE TABLE IF NOT EXISTS directory_versions (
    name    TEXT   NOT NULL PRIMARY KEY,
    version BIGINT NOT NULL
);
