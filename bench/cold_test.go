package bench

import (
	"context"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/internal/pgtest"
	"stonetown/internal/sqldb"
	"stonetown/tuplestore/sqlstore"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func openStore(t testing.TB, c sqldb.Config) *sqlstore.Store {
	t.Helper()
	ctx := context.Background()
	db, err := sqldb.Open(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if err := db.Migrate(ctx, sqlstore.Migrations()); err != nil {
		t.Fatal(err)
	}
	s, err := sqlstore.New(sqlstore.Config{DB: db})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// An engine without data of a tenant answers a batch of 500 on a PostgreSQL 2 ms away in
// one round trip for the head and the schema and one for each level of the graph.
func TestColdBatchOverPostgreSQL(t *testing.T) {
	url := pgtest.URL(t)
	d := NewDocs()
	loadAll(t, newInProcess(t, openStore(t, sqldb.Config{URL: url}), engine.Config{ResidentBytes: -1}), d)

	far, roundTrips := pgtest.Latency(t, url, 2*time.Millisecond)
	store := openStore(t, sqldb.Config{URL: far, MaxConns: 1})
	ctx := context.Background()
	draw := d.Questioner(2, 0)
	ask := func() (trips int, took time.Duration) {
		p := newInProcess(t, store, engine.Config{ResidentBytes: -1}) // without data
		batch := draw.Batch(500)
		before, began := roundTrips(), time.Now()
		allowed, err := p.Prepare(batch)(ctx)
		trips, took = roundTrips()-before, time.Since(began)
		if err != nil {
			t.Fatal(err)
		}
		for i := range batch {
			if allowed[i] != batch[i].Allowed {
				t.Fatal(wrong(&batch[i], allowed[i]))
			}
		}
		return trips, took
	}
	ask() // prepares the connection's statements
	for range 5 {
		trips, took := ask()
		t.Logf("%d round trips, %v", trips, took)
		if trips > docsDepth+2 {
			t.Errorf("a cold batch took %d round trips, want at most depth + 2 = %d", trips, docsDepth+2)
		}
	}
}
