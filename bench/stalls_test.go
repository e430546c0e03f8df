package bench

import (
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/internal/sqldb"
)

// BenchmarkStalls runs [Stalls] on each database.
func BenchmarkStalls(b *testing.B) {
	onEach(b, func(b *testing.B, url string) {
		benchmark(b, newInProcess(b, openStore(b, sqldb.Config{URL: url}), engine.Config{}), Stalls{NewDocs()}, 5*time.Second)
	})
}

// benchmark measures a workload in process and logs its figures.
func benchmark(b *testing.B, p *InProcess, w Workload, duration time.Duration) {
	b.Helper()
	for b.Loop() {
		report, err := Run(b.Context(), Options{
			Workloads: []Workload{w}, InProcess: func() *InProcess { return p }, Duration: duration, Progress: b.Logf,
		})
		if err != nil {
			b.Fatal(err)
		}
		if err := report.WriteTable(b.Output()); err != nil {
			b.Fatal(err)
		}
	}
}
