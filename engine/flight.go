package engine

import (
	"context"
	"sync"
)

// flights lets callers share work whose result must be newer than their call:
// whoever calls while a run is under way waits, with all others who do, for the
// next one.
type flights struct {
	group   *sync.WaitGroup // counts the goroutines
	mu      sync.Mutex
	running bool
	next    *flight
}

type flight struct {
	done chan struct{}
	err  error
}

// do returns the outcome of a run that began after do was called. The run does
// not end with ctx: others may depend on it.
func (f *flights) do(ctx context.Context, run func() error) error {
	f.mu.Lock()
	if f.next == nil {
		f.next = &flight{done: make(chan struct{})}
	}
	mine := f.next
	if !f.running {
		f.running = true
		f.group.Go(func() { f.fly(run) })
	}
	f.mu.Unlock()
	select {
	case <-mine.done:
		return mine.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *flights) fly(run func() error) {
	for {
		f.mu.Lock()
		now := f.next
		f.next = nil
		if now == nil {
			f.running = false
			f.mu.Unlock()
			return
		}
		f.mu.Unlock()
		now.err = run()
		close(now.done)
	}
}
