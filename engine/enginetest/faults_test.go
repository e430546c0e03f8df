package enginetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/internal/pgtest"
)

// staleness is the maximum age of an answer that minimizes latency.
const staleness = 5 * time.Second

// TestHistoriesUnderFaults runs two engines, as in two processes, on one PostgreSQL with
// latency and failing connections. Requests may fail. But no answer mixes revisions, is
// older than its consistency allows, even if the other engine acknowledged the writes, or
// reflects a write that failed.
func TestHistoriesUnderFaults(t *testing.T) {
	randomly(t, func(t *testing.T, r *rand.Rand) {
		ctx := context.Background()
		url, _ := pgtest.Latency(t, pgtest.URL(t), time.Millisecond)
		direct := openSQL(t, url) // brings the tables up to date
		clean := newEngine(t, engine.Config{}, direct)
		var lines []*pgtest.Faulty
		var engines []*engine.Engine
		for range 2 {
			line := pgtest.NewFaulty(t, url)
			line.Delay = 20 * time.Millisecond
			lines = append(lines, line)
			engines = append(engines, newEngine(t, engine.Config{MaxStaleness: staleness / 2, TailTimeout: time.Second}, openSQL(t, line.URL)))
		}
		var failures, answers atomic.Int64
		tenants := max(1, *rounds/50)
		for round := range tenants {
			w := newTenant(ctx, t, clean, r, fmt.Sprintf("tnt_%d", round))
			w.failures, w.concurrent = &failures, true // until the end, because a failed write may have been committed
			for i, line := range lines {
				line.Randomly(rand.New(rand.NewPCG(r.Uint64(), uint64(i))), 0.1, pgtest.CommitFaults, pgtest.AnyFaults)
			}
			var checkers sync.WaitGroup
			done := make(chan struct{})
			for n := range 6 {
				seen := *w // the same history through another engine
				seen.engine = engines[n%2]
				u := w.universe
				u.rand = rand.New(rand.NewPCG(r.Uint64(), uint64(n)))
				checkers.Go(func() {
					for {
						select {
						case <-done:
							return
						default:
						}
						answers.Add(1)
						switch n / 2 {
						case 0:
							seen.compare(ctx, t, &u, engine.Consistency{})
						case 1:
							token := seen.newest.Load().(string)
							seen.compare(ctx, t, &u, engine.Consistency{Mode: engine.AtLeast, Token: token})
						case 2:
							seen.compare(ctx, t, &u, engine.Consistency{Mode: engine.MinimizeLatency})
						}
					}
				})
			}
			for i := range 40 {
				w.engine = engines[i%2]
				w.write(ctx, t)
			}
			close(done)
			checkers.Wait()
			for _, line := range lines {
				line.Heal()
			}
			// Without faults, all requests are answered again.
			w.failures = nil
			for _, e := range engines {
				w.engine = e
				for range 10 {
					w.compare(ctx, t, &w.universe, engine.Consistency{})
				}
			}
			if t.Failed() {
				return
			}
		}
		t.Logf("%d histories, %d requests compared, %d failed; %s; %s", tenants, answers.Load(), failures.Load(), lines[0], lines[1])
		if failures.Load() == 0 || failures.Load() > answers.Load()*3/4 {
			t.Error("this shows too little")
		}
	})
}
