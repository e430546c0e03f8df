package bench

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/internal/sqldb"
)

var beyondMemory = flag.String("beyond-memory", "", "folder of BenchmarkBeyondMemory, for a database that stays there")

// BenchmarkBeyondMemory measures checks of a tenant in a mapped file of which only a part of the pages
// fits into memory. The first run makes the database, of -restore-documents; later ones measure, in a
// process that the caller has limited to less memory than the file has, as by a control group.
func BenchmarkBeyondMemory(b *testing.B) {
	if *beyondMemory == "" {
		b.Skip("needs the flag -beyond-memory")
	}
	w := documents(*restoreDocuments)
	file := filepath.Join(*beyondMemory, "bench.db")
	_, missing := os.Stat(file)
	store := openStore(b, sqldb.Config{URL: "sqlite://" + file})
	c := engine.Config{GraphFolder: filepath.Join(*beyondMemory, "graphs"), ResidentBytes: 1 << 20}
	if missing != nil {
		c.ResidentBytes = 4 << 30
		p := newInProcess(b, store, c)
		loadAll(b, p, w)
		if err := p.Warm(b.Context(), w); err != nil {
			b.Fatal(err)
		}
		b.Skip("the database is made; run it again with less memory")
	}
	p := newInProcess(b, store, c)
	if err := p.Warm(b.Context(), w); err != nil {
		b.Fatal(err)
	}
	if s := p.Engine.Stats(); s.MappedBytes == 0 {
		b.Fatalf("the tenant is in no mapped file: %+v", s)
	}
	l := &LargerThanMemory{draw: w}
	for b.Loop() {
		for _, m := range []struct{ workers, size int }{{1, 1}, {remoteWorkers, 1}, {1, batchSize}} {
			f, err := l.asking(p, m.workers, m.size).take(b.Context(), 5*time.Second)
			if err != nil {
				b.Fatal(err)
			}
			name := fmt.Sprintf("%s-%d", f.Measure, f.Workers)
			b.ReportMetric(f.PerSecond, name+"/s")
			b.ReportMetric(f.P99, name+"-p99-µs")
		}
	}
	b.ReportMetric(float64(p.Engine.Stats().MappedBytes)/(1<<20), "mapped-MiB")
}
