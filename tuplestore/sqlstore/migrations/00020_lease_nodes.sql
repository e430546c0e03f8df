-- +goose NO TRANSACTION
-- +goose Up
-- The processes that hold read leases. An update is a renewal. A row is deleted by a writer whose
-- process did not answer, in the transaction of the write (package readlease).
CREATE TABLE IF NOT EXISTS lease_nodes (
    node_id  TEXT   NOT NULL,
    address  TEXT   NOT NULL,
    lease    BIGINT NOT NULL,
    renewals BIGINT NOT NULL,
    PRIMARY KEY (node_id)
);
