-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS report_runs_by_time ON report_runs (created_at);
