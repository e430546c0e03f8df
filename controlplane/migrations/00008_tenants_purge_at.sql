-- +goose NO TRANSACTION
-- +goose Up
-- When the rows of a decommissioned tenant are deleted; 0 if it is not decommissioned, or they
-- were deleted.
ALTER TABLE tenants ADD COLUMN purge_at BIGINT NOT NULL DEFAULT 0;
