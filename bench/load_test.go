package bench

import (
	"fmt"
	"path/filepath"
	"testing"

	"stonetown/engine"
	"stonetown/internal/pgtest"
	"stonetown/internal/sqldb"
)

// BenchmarkLoad writes the workload through the engine, durably.
func BenchmarkLoad(b *testing.B) {
	for name, url := range map[string]func() string{
		"sqlite":   func() string { return "sqlite://" + filepath.Join(b.TempDir(), "load.db") },
		"postgres": func() string { return pgtest.URL(b) },
	} {
		b.Run(name, func(b *testing.B) {
			d := NewDocs()
			store := openStore(b, sqldb.Config{URL: url()})
			p := newInProcess(b, store, engine.Config{})
			n := 0
			for b.Loop() {
				p.Tenant = fmt.Sprint("tnt_", n) // an empty one
				n++
				loadAll(b, p, d)
			}
			b.ReportMetric(float64(b.N)*docsTuples/b.Elapsed().Seconds(), "tuples/s")
		})
	}
}
