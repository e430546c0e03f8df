package sqldb

import (
	"context"
	"slices"
	"strconv"
	"time"
)

// Health is what decides how fast a database answers, and whether what it acknowledges survives a
// crash of its machine.
type Health struct {
	Version   string
	RoundTrip time.Duration // the median of a few
	// Volatile are the settings because of which acknowledged commits can be lost.
	Volatile []string
	MaxConns int64 // of all clients together; 0: not known, or there is no bound
	// Clock is how far ahead the clock of the database is, to half a round trip; 0 on SQLite.
	Clock time.Duration
}

const healthReads = 11

// Health reads the health of the database.
func (db *DB) Health(ctx context.Context) (h Health, err error) {
	version, settings := `SELECT version()`, `SELECT name, setting FROM pg_settings WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit', 'max_connections') ORDER BY name`
	clock := `SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)`
	if db.Dialect() == SQLite {
		version, settings, clock = `SELECT 'SQLite ' || sqlite_version()`, "", `SELECT 0`
	}
	if err := db.QueryRow(ctx, version).Scan(&h.Version); err != nil {
		return h, err
	}
	var trips []time.Duration
	for range healthReads {
		var at int64
		began := time.Now()
		if err := db.QueryRow(ctx, clock).Scan(&at); err != nil {
			return h, err
		}
		trip := time.Since(began)
		trips = append(trips, trip)
		if at != 0 {
			h.Clock = time.UnixMicro(at).Sub(began.Add(trip / 2))
		}
	}
	slices.Sort(trips)
	h.RoundTrip = trips[len(trips)/2]
	if settings == "" {
		return h, nil
	}
	rows, err := db.Query(ctx, settings)
	if err != nil {
		return h, err
	}
	defer rows.Close()
	for rows.Next() {
		var name, setting string
		if err := rows.Scan(&name, &setting); err != nil {
			return h, err
		}
		h.note(name, setting)
	}
	return h, rows.Err()
}

// note notes a setting of PostgreSQL. Those that a database does not have are not there.
func (h *Health) note(name, setting string) {
	if name == "max_connections" {
		h.MaxConns, _ = strconv.ParseInt(setting, 10, 64)
	}
	if setting == "off" {
		h.Volatile = append(h.Volatile, name)
	}
}
