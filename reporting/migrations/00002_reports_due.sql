-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS reports_due ON reports (next_run_at) WHERE next_run_at > 0;
