package bench

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/internal/pgtest"
	"stonetown/internal/sqldb"
)

// onEach runs a benchmark on an empty database of each kind.
func onEach(b *testing.B, run func(b *testing.B, url string)) {
	b.Run("sqlite", func(b *testing.B) { run(b, "sqlite://"+filepath.Join(b.TempDir(), "bench.db")) })
	b.Run("postgres", func(b *testing.B) { run(b, pgtest.URL(b)) })
}

// BenchmarkLoad writes the workload through the engine, durably.
func BenchmarkLoad(b *testing.B) {
	onEach(b, func(b *testing.B, url string) {
		d := NewDocs()
		store := openStore(b, sqldb.Config{URL: url})
		p := newInProcess(b, store, engine.Config{})
		n, before := 0, databaseSize(b, store.DB)
		for b.Loop() {
			p.Tenant = fmt.Sprint("tnt_", n) // an empty one
			n++
			loadAll(b, p, d)
		}
		b.ReportMetric(float64(b.N)*docsTuples/b.Elapsed().Seconds(), "tuples/s")
		b.ReportMetric(float64(databaseSize(b, store.DB)-before)/float64(b.N)/docsTuples, "disk-B/tuple")
	})
}

// databaseSize returns the bytes of all tables and indexes, the changelog among them.
func databaseSize(b *testing.B, db *sqldb.DB) (n int64) {
	b.Helper()
	query := `SELECT pg_database_size(current_database())`
	if db.Dialect() == sqldb.SQLite {
		query = `SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()`
	}
	if err := db.QueryRow(b.Context(), query).Scan(&n); err != nil {
		b.Fatal(err)
	}
	return n
}

// BenchmarkColdStart measures a process that starts with the workload in its database: the
// time of its first check, which is answered from the database, and the tuples per second
// that become resident meanwhile.
func BenchmarkColdStart(b *testing.B) {
	onEach(b, func(b *testing.B, url string) {
		d := NewDocs()
		store := openStore(b, sqldb.Config{URL: url})
		loadAll(b, newInProcess(b, store, engine.Config{}), d)
		questions := d.Questioner(1, 0)
		var first, loading time.Duration
		for b.Loop() {
			p := newInProcess(b, store, engine.Config{})
			began := time.Now()
			if _, err := p.Prepare([]Question{questions.Next()})(b.Context()); err != nil {
				b.Fatal(err)
			}
			first += time.Since(began)
			if err := p.Warm(b.Context(), d); err != nil {
				b.Fatal(err)
			}
			loading += time.Since(began)
			p.Engine.Close()
		}
		b.ReportMetric(first.Seconds()*1e3/float64(b.N), "first-ms")
		b.ReportMetric(float64(b.N)*docsTuples/loading.Seconds(), "tuples/s")
	})
}
