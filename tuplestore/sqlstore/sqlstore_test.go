package sqlstore

import (
	"path/filepath"
	"testing"
	"time"

	"stonetown/internal/pgtest"
	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
	"stonetown/tuplestore/storetest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// databases are the available kinds of databases.
var databases = []struct {
	name string
	url  func(testing.TB) string
}{
	{"sqlite", func(t testing.TB) string { return "sqlite://" + filepath.Join(t.TempDir(), "test.db") }},
	{"postgres", pgtest.URL},
}

// onEach runs a test on every kind of database.
func onEach(t *testing.T, test func(t *testing.T, url string)) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) { test(t, d.url(t)) })
	}
}

func openDB(t testing.TB, url string) *sqldb.DB {
	t.Helper()
	db, err := sqldb.Open(t.Context(), sqldb.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close database: %v", err)
		}
	})
	if err := db.Migrate(t.Context(), Migrations()); err != nil {
		t.Fatal(err)
	}
	return db
}

func open(t testing.TB, c Config) *Store {
	t.Helper()
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close store: %v", err)
		}
	})
	return s
}

func exec(t testing.TB, db *sqldb.DB, sql string, args ...any) {
	t.Helper()
	if _, err := db.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func TestConformance(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		db := openDB(t, url)
		empty := func(t *testing.T, c Config) *Store {
			exec(t, db, `DROP TABLE IF EXISTS storetest_rows`)
			for _, table := range []string{
				"tenant_heads", "tenant_commits", "tenant_receipts", "tenant_schemas", live, history,
			} {
				exec(t, db, "DELETE FROM "+table)
			}
			c.DB, c.ScanPage = db, 97
			return open(t, c)
		}
		storetest.Run(t, func(t *testing.T) tuplestore.Store { return empty(t, Config{Clock: storetest.UnsteadyClock}) })
		storetest.RunSQL(t, func(t *testing.T) (tuplestore.Store, *sqldb.DB) { return empty(t, Config{}), db })
		storetest.RunQueue(t, func(t *testing.T, l storetest.Limits) tuplestore.Store {
			return empty(t, Config{MaxWaitingPerResource: l.PerResource, MaxWaitingPerTenant: l.PerTenant})
		})
		storetest.RunCollection(t, func(t *testing.T, clock func() time.Time) storetest.Collector {
			return empty(t, Config{Clock: clock})
		})
		if db.Dialect() == sqldb.SQLite {
			return // one process owns the file
		}
		other := openDB(t, url)
		storetest.RunShared(t, func(t *testing.T) (a, b tuplestore.Store) {
			return empty(t, Config{}), open(t, Config{DB: other})
		})
	})
}
