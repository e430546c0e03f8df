-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS known_devices_by_age ON known_devices (last_seen_at);
