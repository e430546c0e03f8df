package bench

import (
	"fmt"
	"strings"
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

// benchmark measures a workload in process. It reports the figures of the last iteration.
func benchmark(b *testing.B, p *InProcess, w Workload, duration time.Duration) {
	b.Helper()
	var report *Report
	for b.Loop() {
		var err error
		report, err = Run(b.Context(), Options{Workloads: []Workload{w}, InProcess: func() *InProcess { return p }, Duration: duration, Progress: func(string, ...any) {}})
		if err != nil {
			b.Fatal(err)
		}
	}
	word := strings.NewReplacer(", ", "-", " ", "-", ",", "")
	for _, f := range report.Figures {
		name := fmt.Sprintf("%s-%d", word.Replace(f.Measure), f.Workers)
		b.ReportMetric(f.PerSecond, name+"/s")
		if f.P99 > 0 {
			b.ReportMetric(f.P99, name+"-p99-µs")
		}
		if f.Reads > 0 {
			b.ReportMetric(f.Reads, name+"-reads/1000")
		}
	}
}
