package bench

import (
	"fmt"
	"path/filepath"
	"testing"

	"stonetown/engine"
	"stonetown/internal/sqldb"
	"stonetown/tuplestore/sqlstore"
)

// BenchmarkLoad writes the workload through the engine, durably.
func BenchmarkLoad(b *testing.B) {
	d := NewDocs()
	db, err := sqldb.Open(b.Context(), sqldb.Config{URL: "sqlite://" + filepath.Join(b.TempDir(), "load.db")})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	if err := db.Migrate(b.Context(), sqlstore.Migrations()); err != nil {
		b.Fatal(err)
	}
	store, err := sqlstore.New(sqlstore.Config{DB: db})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	p := newInProcess(b, store, engine.Config{})
	n := 0
	for b.Loop() {
		p.Tenant = fmt.Sprint("tnt_", n) // an empty one
		n++
		loadAll(b, p, d)
	}
	b.ReportMetric(float64(b.N)*docsTuples/b.Elapsed().Seconds(), "tuples/s")
}
