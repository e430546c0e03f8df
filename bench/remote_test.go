package bench

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/internal/pgtest"
	"stonetown/internal/sqldb"
	"stonetown/tuplestore/sqlstore"
)

// BenchmarkFarDatabase measures the latency of fully consistent checks on a resident graph
// with a database 2 ms away. Each waits for one read that began after its arrival, which it
// shares with the other waiting checks.
func BenchmarkFarDatabase(b *testing.B) {
	url := pgtest.URL(b)
	d := NewDocs()
	loadAll(b, newInProcess(b, openStore(b, sqldb.Config{URL: url}), engine.Config{ResidentBytes: -1}), d)
	far, roundTrips := pgtest.Latency(b, url, 2*time.Millisecond)
	for _, workers := range []int{1, 16} {
		b.Run(fmt.Sprint(workers, " at once"), func(b *testing.B) {
			p := newInProcess(b, openStore(b, sqldb.Config{URL: far}), engine.Config{})
			if err := p.Warm(b.Context(), d); err != nil {
				b.Fatal(err)
			}
			var f Figure
			before, asked := roundTrips(), int64(0)
			for b.Loop() {
				var err error
				if f, err = checks(b.Context(), p, d, workers, time.Second); err != nil {
					b.Fatal(err)
				}
				asked += f.Calls
			}
			b.ReportMetric(f.P50/1000, "p50-ms")
			b.ReportMetric(f.P99/1000, "p99-ms")
			b.ReportMetric(1000*float64(roundTrips()-before)/float64(asked), "round-trips/1000-checks")
		})
	}
}

// BenchmarkProcesses measures fully consistent checks by one engine and by two, each with
// connections of its own, on one PostgreSQL, 16 concurrent in total; and the number of
// statements of the database.
func BenchmarkProcesses(b *testing.B) {
	url := pgtest.URL(b)
	d := NewDocs()
	loadAll(b, newInProcess(b, openStore(b, sqldb.Config{URL: url}), engine.Config{ResidentBytes: -1}), d)
	for _, processes := range []int{1, 2} {
		b.Run(fmt.Sprint(processes), func(b *testing.B) {
			var stores []*sqlstore.Store
			var engines []*InProcess
			for range processes {
				store := openStore(b, sqldb.Config{URL: url})
				p := newInProcess(b, store, engine.Config{})
				if err := p.Warm(b.Context(), d); err != nil {
					b.Fatal(err)
				}
				stores, engines = append(stores, store), append(engines, p)
			}
			statements := func() (n int64) {
				for _, s := range stores {
					n += s.DB.Stats().Statements
				}
				return n
			}
			var perSecond float64
			var asked int64
			before := statements()
			for b.Loop() {
				var mu sync.Mutex
				var wg sync.WaitGroup
				for _, p := range engines {
					wg.Go(func() {
						f, err := checks(b.Context(), p, d, 16/processes, time.Second)
						if err != nil {
							b.Error(err)
						}
						mu.Lock()
						defer mu.Unlock()
						perSecond += f.PerSecond
						asked += f.Calls
					})
				}
				wg.Wait()
			}
			b.ReportMetric(perSecond/float64(b.N), "checks/s")
			b.ReportMetric(1000*float64(statements()-before)/float64(asked), "statements/1000-checks")
		})
	}
}

// BenchmarkTenants measures checks of a thousand tenants, with memory for all of them, for
// a tenth and for none: the others are in mapped files or answered from the database.
func BenchmarkTenants(b *testing.B) {
	onEach(b, func(b *testing.B, url string) {
		store := openStore(b, sqldb.Config{URL: url})
		w := tenants(1000)
		first := &tenanted{newInProcess(b, store, engine.Config{}), w}
		loadAll(b, first, w)
		if err := first.Warm(b.Context(), w); err != nil {
			b.Fatal(err)
		}
		all := first.Engine.Stats().ResidentBytes
		for _, c := range []struct {
			name  string
			bytes int64
			files bool
		}{{"all resident", 0, false}, {"a tenth, the others in files", all / 10, true}, {"a tenth", all / 10, false}, {"none", -1, false}} {
			b.Run(c.name, func(b *testing.B) {
				config := engine.Config{ResidentBytes: c.bytes}
				if c.files {
					config.GraphFolder = b.TempDir()
				}
				t := &tenanted{newInProcess(b, store, config), w}
				if err := t.Warm(b.Context(), w); err != nil {
					b.Fatal(err)
				}
				var f Figure
				for b.Loop() {
					var err error
					if f, err = checks(b.Context(), t, w, 16, time.Second); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(f.PerSecond, "checks/s")
				b.ReportMetric(f.P50, "p50-us")
				b.ReportMetric(float64(t.Engine.Stats().Loads), "loads")
				b.ReportMetric(float64(t.Engine.Stats().ResidentBytes)/float64(all), "resident-share")
			})
		}
	})
}
