package web

import (
	"context"
	"sync"
	"time"

	"stonetown/internal/fair"
)

// lazyDeadline is the context of a request. It carries a [fair.Request], and has a deadline
// whose timer starts when Done is first called. Most requests are answered from memory and
// never wait; a timer would be a large part of their cost.
type lazyDeadline struct {
	context.Context
	at      time.Time
	request fair.Request

	mu     sync.Mutex
	timed  context.Context // after the first call of Done
	cancel context.CancelFunc
	ended  bool
}

// withLazyDeadline is [context.WithTimeout] with a lazy timer. The caller must call end.
func withLazyDeadline(parent context.Context, timeout time.Duration) *lazyDeadline {
	return &lazyDeadline{Context: parent, at: time.Now().Add(timeout)}
}

func (d *lazyDeadline) Deadline() (time.Time, bool) {
	if at, ok := d.Context.Deadline(); ok && at.Before(d.at) {
		return at, true
	}
	return d.at, true
}

func (d *lazyDeadline) Value(key any) any {
	if key == fair.Key {
		return &d.request
	}
	return d.Context.Value(key)
}

func (d *lazyDeadline) Done() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timed == nil {
		d.timed, d.cancel = context.WithDeadline(d.Context, d.at)
		if d.ended {
			d.cancel()
		}
	}
	return d.timed.Done()
}

// AfterFunc is used by package context, so that derived contexts need no goroutine that waits
// for the end of this one.
func (d *lazyDeadline) AfterFunc(f func()) (stop func() bool) {
	d.Done()
	return context.AfterFunc(d.timed, f)
}

func (d *lazyDeadline) Err() error {
	d.mu.Lock()
	timed, ended := d.timed, d.ended
	d.mu.Unlock()
	switch {
	case timed != nil: // so that Err says no more than Done
		return timed.Err()
	case ended:
		return context.Canceled
	}
	if err := d.Context.Err(); err != nil {
		return err
	}
	if !time.Now().Before(d.at) {
		return context.DeadlineExceeded
	}
	return nil
}

// end cancels the contexts that derive from this one.
func (d *lazyDeadline) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
	if d.cancel != nil {
		d.cancel()
	}
}
