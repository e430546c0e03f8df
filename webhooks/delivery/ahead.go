package delivery

import (
	"context"
	"sync"
	"time"
)

// ahead is the set of the tenants whose log may be ahead of the reader. Tenants take turns. A
// turn that takes long continues as a heavy one, in a queue of its own with fewer workers, until
// the tenant has no more events or cheaper ones, so that the other tenants always find a free worker. A tenant
// whose turns fail takes the next one after a delay. ahead knows which tenants have no reader, so
// that their events cost nothing. It is safe for concurrent use.
type ahead struct {
	clock func() time.Time

	mu      sync.Mutex
	idle    map[string]bool     // tenants without a reader
	tenants map[string]*reading // those that are queued, have a turn, or wait after a failure
	light   turns
	heavy   turns
}

// reading is the state of a tenant. The worker that has its turn owns it.
type reading struct {
	tenantID string
	heavy    bool
	asked    *moment // questions of an earlier turn that could not ask them all, or nil

	// guarded by ahead.mu
	state    turn
	failures int // in succession
	notUntil time.Time
}

// turn is the state of a tenant in a queue.
type turn int

const (
	waiting turn = iota // after a failure
	queued
	running // a worker has it
	rerun   // a worker has it, and it has to run again
)

// turns is a queue of tenants.
type turns struct {
	queue []*reading
	wake  chan struct{} // has room for one value for each worker
}

// outcome is the result of a turn.
type outcome int

const (
	allEvents  outcome = iota // the reader is at the end of the log
	moreEvents                // there may be more events
	longTurn                  // there are more events, and the tenant is heavy
	noReader                  // the tenant has no subscription
	failed                    // the events are read again
)

// The delay after a failure doubles with each further one.
const (
	firstDelay = 250 * time.Millisecond
	maxDelay   = 30 * time.Second
)

func newAhead(clock func() time.Time) *ahead {
	return &ahead{
		clock: clock, idle: map[string]bool{}, tenants: map[string]*reading{},
		light: turns{wake: make(chan struct{}, fanningOut)}, heavy: turns{wake: make(chan struct{}, fanningOut)},
	}
}

// started adds a tenant whose reader was started.
func (a *ahead) started(tenantID string) {
	a.mu.Lock()
	delete(a.idle, tenantID)
	a.mu.Unlock()
	a.add(tenantID)
}

// appended adds a tenant with new events unless it has no reader.
func (a *ahead) appended(tenantID string) {
	a.mu.Lock()
	idle := a.idle[tenantID]
	a.mu.Unlock()
	if !idle {
		a.add(tenantID)
	}
}

// add adds a tenant to its queue, unless it waits after a failure: then a later call adds it.
func (a *ahead) add(tenantID string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.tenants[tenantID]
	switch {
	case r == nil:
		r = &reading{tenantID: tenantID}
		a.tenants[tenantID] = r
		a.enqueue(r)
	case r.state == running:
		r.state = rerun
	case r.state == waiting && !a.clock().Before(r.notUntil):
		a.enqueue(r)
	}
}

// enqueue needs a.mu.
func (a *ahead) enqueue(r *reading) {
	r.state = queued
	q := &a.light
	if r.heavy {
		q = &a.heavy
	}
	q.queue = append(q.queue, r)
	q.signal()
}

func (q *turns) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// next waits for the turn of a tenant in one of the queues. It returns nil when ctx ends.
func (a *ahead) next(ctx context.Context, q *turns) *reading {
	for ctx.Err() == nil {
		a.mu.Lock()
		if len(q.queue) > 0 {
			r := q.queue[0]
			q.queue[0] = nil
			q.queue = q.queue[1:]
			r.state = running
			delete(a.idle, r.tenantID) // so that what is appended from now on is noted
			if len(q.queue) > 0 {
				q.signal()
			}
			a.mu.Unlock()
			return r
		}
		a.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-q.wake:
		}
	}
	return nil
}

// done ends the turn of a tenant, which gets another one if there is more, or if events were
// appended meanwhile.
func (a *ahead) done(r *reading, o outcome) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if o == failed {
		r.state, r.notUntil = waiting, a.clock().Add(delayAfter(r.failures))
		r.failures++
		return
	}
	r.failures = 0
	switch o {
	case longTurn:
		r.heavy = true
	case allEvents, noReader:
		r.heavy = false
	}
	switch {
	case o == moreEvents || o == longTurn || r.state == rerun:
		a.enqueue(r)
		return
	case o == noReader:
		a.idle[r.tenantID] = true
	}
	delete(a.tenants, r.tenantID)
}

// delayAfter returns the delay before the next turn of a tenant after so many earlier failures.
func delayAfter(failures int) time.Duration {
	return min(firstDelay<<min(failures, 20), maxDelay)
}
