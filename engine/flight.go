package engine

import (
	"context"
	"sync"
	"time"
)

// flights lets callers share runs whose result must be newer than their call. All callers
// that arrive during a run wait for the next one. If a run takes long, the next one starts
// before its end; otherwise callers could wait for almost two runs.
type flights struct {
	run   func() error    // may run several times at once
	group *sync.WaitGroup // counts the runs

	mu      sync.Mutex
	running int
	began   time.Time // of the newest run
	timed   bool      // a timer will start the next
	next    *flight   // that callers wait for and that has not begun; or nil
}

const (
	// maxFlights is the number of concurrent runs.
	maxFlights = 4
	// apart is the minimum time between the starts of concurrent runs.
	apart = time.Millisecond
)

type flight struct {
	done chan struct{}
	err  error
}

// do returns the outcome of a run that began after do was called. The run does not end with
// ctx, because other callers may wait for it.
func (f *flights) do(ctx context.Context) error {
	f.mu.Lock()
	if f.next == nil {
		f.next = &flight{done: make(chan struct{})}
	}
	mine := f.next
	f.start()
	f.mu.Unlock()
	select {
	case <-mine.done:
		return mine.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// start starts the next run, if there is one and it is due. mu is held.
func (f *flights) start() {
	if f.next == nil || f.running == maxFlights {
		return
	}
	if f.running > 0 {
		if wait := apart - time.Since(f.began); wait > 0 {
			if !f.timed {
				f.timed = true
				time.AfterFunc(wait, f.startInTime)
			}
			return
		}
	}
	now := f.next
	f.next = nil
	f.running++
	f.began = time.Now()
	f.group.Go(func() {
		now.err = f.run()
		close(now.done)
		f.mu.Lock()
		f.running--
		f.start()
		f.mu.Unlock()
	})
}

func (f *flights) startInTime() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.timed = false
	f.start()
}
