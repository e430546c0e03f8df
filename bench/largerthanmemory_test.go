package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/internal/sqldb"
)

// BenchmarkLargerThanMemory measures checks of a tenant that exceeds the memory budget, which has
// room for a quarter of it or for nothing. No question is asked twice by plan.
func BenchmarkLargerThanMemory(b *testing.B) {
	onEach(b, func(b *testing.B, url string) {
		store := openStore(b, sqldb.Config{URL: url})
		d := NewDocs()
		first := newInProcess(b, store, engine.Config{})
		loadAll(b, first, d)
		if err := first.Warm(b.Context(), d); err != nil {
			b.Fatal(err)
		}
		whole := first.Engine.Stats().ResidentBytes
		for _, w := range []Workload{d, d.Zipf()} {
			for _, memory := range []struct {
				name  string
				bytes int64
			}{{"a quarter", whole / 4}, {"none", -1}} {
				p := newInProcess(b, store, engine.Config{ResidentBytes: memory.bytes})
				for _, m := range []struct{ workers, size int }{{1, 1}, {16, 1}, {1, 500}} {
					b.Run(fmt.Sprintf("%s/%s/%d at once of %d", w.Name(), memory.name, m.workers, m.size), func(b *testing.B) {
						larger(b, p, w, m.workers, m.size)
					})
				}
			}
		}
	})
}

// larger measures calls with new questions, after a time in which what is kept is decided.
func larger(b *testing.B, p *InProcess, w Workload, workers, size int) {
	b.Helper()
	m := newMeter(Figure{Target: p.Name(), Workload: w.Name(), Measure: "check", Workers: workers, PerCall: size}, func(worker int) func(context.Context) error {
		draw := w.Questioner(7, uint64(worker))
		return func(ctx context.Context) error {
			questions := draw.Batch(size)
			allowed, err := p.Prepare(questions)(ctx)
			for i := range allowed {
				if allowed[i] != questions[i].Allowed {
					return wrong(&questions[i], allowed[i])
				}
			}
			return err
		}
	})
	if err := m.run(b.Context(), 5*time.Second); err != nil {
		b.Fatal(err)
	}
	m.reset()
	before := p.Engine.Stats()
	for b.Loop() {
		if err := m.run(b.Context(), time.Second); err != nil {
			b.Fatal(err)
		}
	}
	f, after := m.result(), p.Engine.Stats()
	b.ReportMetric(f.PerSecond, "checks/s")
	b.ReportMetric(f.P50, "p50-us")
	b.ReportMetric(f.P99, "p99-us")
	b.ReportMetric(1000*float64(after.ColdReads-before.ColdReads)/float64(after.Checks-before.Checks), "reads/1000-checks")
}
