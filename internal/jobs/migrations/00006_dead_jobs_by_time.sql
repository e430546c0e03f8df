-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS dead_jobs_by_time ON dead_jobs (died_at);
