package sqlstore

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"stonetown/tuplestore"
)

// BenchmarkFairness measures writes to other resources while 5,000 writes to one resource
// arrive at once: their p99, that of the same writes without the burst, and the time of a
// commit of one of the burst's groups.
func BenchmarkFairness(b *testing.B) {
	const burst, others, each = 5000, 16, 50
	for _, d := range databases {
		b.Run(d.name, func(b *testing.B) {
			s := open(b, Config{DB: openDB(b, d.url(b)), MaxWaitingPerResource: burst, MaxWaitingPerTenant: 2 * burst})
			n := 0
			write := func(object, user string) time.Duration {
				began := time.Now()
				_, err := s.Write(b.Context(), benchTenant, tuplestore.Write{Ops: []tuplestore.Op{{Tuple: tupleOf([6]string{"document", object, "viewer", "user", user, ""})}}})
				if err != nil {
					b.Error(err)
				}
				return time.Since(began)
			}
			// p99 of the other writes, each to a resource of its own.
			p99 := func() time.Duration {
				var mu sync.Mutex
				var took []time.Duration
				var wg sync.WaitGroup
				for o := range others {
					wg.Go(func() {
						for i := range each {
							t := write(fmt.Sprintf("other %d", o), fmt.Sprintf("%d.%d", n, i))
							mu.Lock()
							took = append(took, t)
							mu.Unlock()
						}
					})
				}
				wg.Wait()
				slices.Sort(took)
				n++
				return took[len(took)*99/100]
			}
			var quiet, during, longest time.Duration
			for b.Loop() {
				quiet = max(quiet, p99())
				var wg sync.WaitGroup
				var mu sync.Mutex
				began := time.Now()
				for i := range burst {
					wg.Go(func() {
						write("busy", fmt.Sprintf("%d.%d", n, i))
						mu.Lock()
						defer mu.Unlock()
						longest = max(longest, time.Since(began))
					})
				}
				during = max(during, p99())
				wg.Wait()
			}
			b.ReportMetric(quiet.Seconds()*1000, "p99-quiet-ms")
			b.ReportMetric(during.Seconds()*1000, "p99-burst-ms")
			b.ReportMetric(longest.Seconds()*1000*float64(s.GroupOps)/burst, "group-ms")
		})
	}
}
