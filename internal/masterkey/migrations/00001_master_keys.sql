-- +goose NO TRANSACTION
-- +goose Up
-- The keys under which processes have sealed values.
CREATE TABLE IF NOT EXISTS master_keys (
    key_id     TEXT   NOT NULL, -- in hexadecimal
    position   BIGINT NOT NULL, -- the largest one seals
    root       BYTEA  NOT NULL, -- the key of derived values, sealed under this key; empty: retired
    created_at BIGINT NOT NULL,
    retired_at BIGINT NOT NULL, -- 0: not retired
    PRIMARY KEY (key_id)
);
