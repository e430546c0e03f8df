package bench

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
)

// BenchmarkChecksUnderWrites measures the remaining throughput of fully consistent checks
// while 1,000 tuples are written per second, one by one.
func BenchmarkChecksUnderWrites(b *testing.B) {
	onEach(b, func(b *testing.B, url string) {
		store := openStore(b, sqldb.Config{URL: url})
		p, d := newInProcess(b, store, engine.Config{}), NewDocs()
		loadAll(b, p, d)
		if err := p.Warm(b.Context(), d); err != nil {
			b.Fatal(err)
		}
		checks := func(workers int) float64 {
			f, err := checks(b.Context(), p, d, workers, time.Second)
			if err != nil {
				b.Fatal(err)
			}
			return f.PerSecond
		}
		var quiet, writing, written float64
		for b.Loop() {
			quiet += checks(16)
			ctx, stop := context.WithCancel(b.Context())
			var wg sync.WaitGroup
			var n atomic.Int64
			began := time.Now()
			for range 16 {
				wg.Go(func() {
					for tick := time.NewTicker(16 * time.Millisecond); ; {
						select {
						case <-ctx.Done():
							tick.Stop()
							return
						case <-tick.C:
						}
						i := int(n.Add(1))
						t := tuplestore.Tuple{Object: object("document", "new", i), Relation: "viewer", Subject: user(i % docsUsers)}
						if err := p.Write(b.Context(), []tuplestore.Tuple{t}); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			writing += checks(16)
			stop()
			wg.Wait()
			written += float64(n.Load()) / time.Since(began).Seconds()
		}
		b.ReportMetric(quiet/float64(b.N), "quiet-checks/s")
		b.ReportMetric(writing/float64(b.N), "checks/s")
		b.ReportMetric(written/float64(b.N), "writes/s")
		b.ReportMetric(writing/quiet, "share")
	})
}
