package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A caller gets the outcome of a run that began after its call. The number and the
// concurrency of runs keep their limits.
func TestFlightsBeginAfterTheirCallers(t *testing.T) {
	for _, takes := range []time.Duration{0, 200 * time.Microsecond, 5 * time.Millisecond} {
		var group sync.WaitGroup
		var began, atOnce, most atomic.Int64 // runs so far, running, and the maximum of that
		failed := errors.New("failed")
		f := &flights{group: &group}
		var last atomic.Int64 // the newest run that is over
		f.run = func() error {
			n := began.Add(1)
			if now := atOnce.Add(1); now > most.Load() {
				most.Store(now)
			}
			time.Sleep(takes)
			atOnce.Add(-1)
			for seen := last.Load(); n > seen && !last.CompareAndSwap(seen, n); seen = last.Load() {
			}
			if n%3 == 0 {
				return failed
			}
			return nil
		}
		start := time.Now()
		var callers sync.WaitGroup
		var calls, failures atomic.Int64
		for range 16 {
			callers.Go(func() {
				for time.Since(start) < 200*time.Millisecond {
					before := began.Load()
					if err := f.do(t.Context()); errors.Is(err, failed) {
						failures.Add(1)
					} else if err != nil {
						t.Error(err)
					}
					calls.Add(1)
					if last.Load() <= before {
						t.Errorf("runs of %v: answered after run %d, but run %d had begun before the call", takes, last.Load(), before)
					}
				}
			})
		}
		callers.Wait()
		group.Wait()
		if most.Load() > maxFlights || takes > 2*apart && most.Load() < 2 {
			t.Errorf("runs of %v: %d at once", takes, most.Load())
		}
		if failures.Load() == 0 || failures.Load() == calls.Load() {
			t.Errorf("runs of %v: %d of %d calls failed with their run", takes, failures.Load(), calls.Load())
		}
		if allowed := int64(time.Since(start)/apart) + 1; takes > apart && began.Load() > allowed {
			t.Errorf("runs of %v: %d runs, more than one every %v", takes, began.Load(), apart)
		}
	}
}

func TestCallersOfFlightsEndWithTheirContext(t *testing.T) {
	var group sync.WaitGroup
	release := make(chan struct{})
	f := &flights{group: &group, run: func() error { <-release; return nil }}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := f.do(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	close(release)
	if err := f.do(t.Context()); err != nil {
		t.Error(err)
	}
	group.Wait()
}
