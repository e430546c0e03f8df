package ratelimit

import (
	"context"
	"embed"
	"errors"
	"hash/fnv"
	"strings"
	"time"

	"stonetown/internal/sqldb"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migrations create the package's table.
func Migrations() sqldb.Migrations { return sqldb.EmbeddedMigrations("ratelimit", migrations) }

const (
	shards        = 16
	collectAtOnce = 500
)

// sqlStore stores buckets in the database and uses its clock, so that the processes of a
// deployment agree. It is a [throttled.GCRAStoreCtx].
type sqlStore struct{ db *sqldb.DB }

// split splits a bucket's name into the tenant and the rest.
func split(key string) (tenant, bucket string) {
	tenant, bucket, _ = strings.Cut(key, "|")
	return tenant, bucket
}

const clock = `CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)`

func (s *sqlStore) GetWithTime(ctx context.Context, key string) (int64, time.Time, error) {
	tenant, bucket := split(key)
	var µs int64
	var arrival *int64
	err := s.db.QueryRow(ctx, `
		SELECT `+clock+`, (SELECT arrival FROM rate_limits WHERE tenant_id = $1 AND bucket = $2)`, tenant, bucket).
		Scan(&µs, &arrival)
	if err != nil {
		return 0, time.Time{}, err
	}
	if arrival == nil {
		return -1, time.UnixMicro(µs), nil
	}
	return *arrival, time.UnixMicro(µs), nil
}

func (s *sqlStore) SetIfNotExistsWithTTL(ctx context.Context, key string, value int64, ttl time.Duration) (bool, error) {
	tenant, bucket := split(key)
	h := fnv.New32a()
	h.Write([]byte(key))
	n, err := s.db.Exec(ctx, `
		INSERT INTO rate_limits (tenant_id, bucket, arrival, shard, expires_at) VALUES ($1, $2, $3, $4, `+clock+` + $5)
		ON CONFLICT (tenant_id, bucket) DO NOTHING`,
		tenant, bucket, value, int64(h.Sum32()%shards), ttl.Microseconds())
	return n == 1, err
}

func (s *sqlStore) CompareAndSwapWithTTL(ctx context.Context, key string, old, new int64, ttl time.Duration) (bool, error) {
	tenant, bucket := split(key)
	n, err := s.db.Exec(ctx, `
		UPDATE rate_limits SET arrival = $4, expires_at = `+clock+` + $5 WHERE tenant_id = $1 AND bucket = $2 AND arrival = $3`,
		tenant, bucket, old, new, ttl.Microseconds())
	return n == 1, err
}

// collect deletes the buckets that are full again.
func (s *sqlStore) collect(ctx context.Context) error {
	var errs []error
	for shard := range shards {
		for {
			var deleted int64
			err := s.db.Tx(ctx, func(tx *sqldb.Tx) error {
				var err error
				deleted, err = tx.Exec(ctx, `
					DELETE FROM rate_limits WHERE (tenant_id, bucket) IN (
						SELECT tenant_id, bucket FROM rate_limits
						WHERE shard = $1 AND expires_at <= `+clock+` ORDER BY expires_at LIMIT $2)`,
					int64(shard), int64(collectAtOnce))
				return err
			})
			errs = append(errs, err)
			if err != nil || deleted < collectAtOnce {
				break
			}
		}
	}
	return errors.Join(errs...)
}
