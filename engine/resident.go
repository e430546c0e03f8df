package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"stonetown/engine/internal/graph"
	"stonetown/engine/internal/program"
	"stonetown/tuplestore"
)

// residency accounts for the memory of the resident graphs. Where not all have
// room, those stay that are asked about most: a tenant comes in the place of others
// only if it is asked about more than twice as often as they are. Else tenants
// asked about in turn would push each other out, and all time go into loading.
type residency struct {
	bytes atomic.Int64 // estimated, all graphs
	scant atomic.Bool  // the room is so far taken that it matters how often tenants are asked about

	mu    sync.Mutex
	sizes map[*tenant]int64
	slots chan struct{} // bounds how many graphs are loaded at once
}

const (
	concurrentLoads = 2
	// retryAfter is how long a tenant stays cold after its load failed, at least.
	retryAfter = time.Minute
	// retryShare bounds the time spent on loads of tenants that turn out too large:
	// one part of so many.
	retryShare = 100
	// retryAtMost is how long such a tenant stays cold, unless it shrinks.
	retryAtMost = 24 * time.Hour
	// shrunkBy is the part of its tuples that a tenant has to lose to be tried earlier.
	shrunkBy = 10
	// reconsiderAfter is how long it stays so when others were asked about as often.
	reconsiderAfter = time.Second
	// sampled is how many resident tenants are looked at for the coldest of them.
	sampled = 16
)

// heat is how often a tenant was asked about lately: a count that is halved every
// heatAge. Some of what comes at the same moment may go uncounted.
type heat struct{ state atomic.Uint64 } // the age in the upper half

const heatAge = 10 * time.Second

func age() uint64 { return uint64(time.Now().UnixNano()/int64(heatAge)) & (1<<32 - 1) }

func (h *heat) add() {
	now := age()
	h.state.Store(now<<32 | min(h.at(now)+1, 1<<32-1))
}

func (h *heat) at(now uint64) uint64 {
	state := h.state.Load()
	return state & (1<<32 - 1) >> min(now-state>>32, 32)
}

var errTooLarge = errors.New("graph exceeds the memory budget")

// startLoading loads the tenant's graph in the background, unless that is under
// way, did not work out a moment ago, or would displace what is asked about as often.
func (t *tenant) startLoading() {
	e := t.engine
	if e.budget < 0 || time.Now().UnixNano() < t.retryAt.Load() && !t.tooLarge.hasShrunk() || !t.loading.CompareAndSwap(false, true) {
		return
	}
	if !e.resident.hasRoom(t, e.budget) {
		t.retryAt.Store(time.Now().Add(reconsiderAfter).UnixNano())
		t.loading.Store(false)
		return
	}
	e.loads.Go(func() {
		defer t.loading.Store(false)
		began := time.Now()
		tuples, err := t.load(e.background)
		if e.background.Err() != nil {
			return
		}
		if !errors.Is(err, errTooLarge) {
			t.tooLarge.forget()
			if err != nil {
				t.retryAt.Store(time.Now().Add(retryAfter).UnixNano())
				e.logger.Warn("tenant stays cold", "tenant", t.id, "error", err)
			}
			return
		}
		wait := t.tooLarge.note(tuples, time.Since(began))
		t.retryAt.Store(time.Now().Add(wait).UnixNano())
		e.logger.Warn("tenant stays cold", "tenant", t.id, "error", err, "tuples", tuples, "retry_after", wait)
	})
}

// tooLarge remembers that a tenant did not fit. Loading it takes long and is for
// nothing, so the next attempt waits in proportion to that, and for twice as long after
// each attempt. A tenant that has lost many tuples is tried at once.
type tooLarge struct {
	tuples  atomic.Int64 // read before it was given up; 0: it is not known to be too large
	deleted atomic.Int64 // since then, and not replaced by others
	times   int          // in a row; guarded by tenant.loading
}

// note remembers an attempt, and returns how long to wait before the next.
func (l *tooLarge) note(tuples int64, took time.Duration) time.Duration {
	l.deleted.Store(0)
	l.tuples.Store(max(1, tuples))
	wait := max(retryAfter, retryShare*took) << min(l.times, 10)
	l.times++
	return min(wait, retryAtMost)
}

func (l *tooLarge) forget() {
	l.tuples.Store(0)
	l.times = 0
}

// count notes what a write changed.
func (l *tooLarge) count(r tuplestore.Result) {
	if l.tuples.Load() == 0 {
		return
	}
	for i, n := range r.Counts {
		switch r.Statuses[i] {
		case tuplestore.Deleted:
			l.deleted.Add(int64(n))
		case tuplestore.Created:
			l.deleted.Add(-int64(n))
		}
	}
}

func (l *tooLarge) hasShrunk() bool {
	tuples := l.tuples.Load()
	return tuples > 0 && l.deleted.Load() >= max(1, tuples/shrunkBy)
}

// load reads the tenant's tuples into a graph and publishes it. It reports how many it
// read.
func (t *tenant) load(ctx context.Context) (tuples int64, err error) {
	e := t.engine
	release, err := e.resident.admit(ctx)
	if err != nil {
		return tuples, err
	}
	defer release()
	head, document, err := e.store.Latest(ctx, t.id)
	if err != nil {
		return tuples, err
	}
	compiled, err := compileDocument(document)
	if err != nil {
		return tuples, err
	}
	g := graph.New()
	for record, err := range e.store.Snapshot(t.id, head.Revision).Scan(ctx, tuplestore.Filter{Presence: tuplestore.WithPresence}) {
		if err != nil {
			return tuples, err
		}
		tuples++
		if g.Add(record.Fact); g.Bytes() > e.budget {
			return tuples, errTooLarge
		}
	}
	for !t.publish(g, t.positionAt(head, compiled)) {
		commits, err := e.store.Changes(ctx, t.id, head.Revision, changesAtOnce)
		if err != nil {
			return tuples, err
		}
		for i := range commits {
			for _, change := range commits[i].Changes {
				g.Apply(change)
			}
			head.Revision = commits[i].Revision
			if commits[i].Schema != nil {
				head.SchemaRevision = head.Revision
				if compiled, err = compileDocument(commits[i].Schema); err != nil {
					return tuples, err
				}
			}
		}
	}
	e.stats.loads.Add(1)
	t.account()
	return tuples, nil
}

// publish makes the graph resident, unless it is behind what the tenant has
// answered from already.
func (t *tenant) publish(g *graph.Graph, at position) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.position.known && at.epoch == t.position.epoch && at.revision < t.position.revision {
		return false
	}
	t.position = at
	t.graph = g
	t.program = program.New(at.compiled, g)
	return true
}

// drop makes the tenant cold.
func (t *tenant) drop() {
	t.mu.Lock()
	t.graph, t.program = nil, nil
	t.mu.Unlock()
	t.engine.resident.set(t, 0)
}

// account records the graph's size and drops others, then the tenant itself, if
// all together no longer fit the budget.
func (t *tenant) account() {
	e := t.engine
	t.mu.RLock()
	var size int64
	if t.graph != nil {
		size = t.graph.Bytes()
	}
	t.mu.RUnlock()
	e.resident.set(t, size)
	t.size.Store(size)
	e.resident.scant.Store(e.resident.bytes.Load() > e.budget/2)
	for e.resident.bytes.Load() > e.budget {
		victim := e.resident.coldest(t)
		if victim == nil {
			victim = t
		}
		victim.drop()
		if victim == t {
			t.retryAt.Store(time.Now().Add(retryAfter).UnixNano())
			return
		}
	}
}

// admit waits for one of the slots for loading.
func (r *residency) admit(ctx context.Context) (release func(), err error) {
	r.mu.Lock()
	if r.slots == nil {
		r.slots = make(chan struct{}, concurrentLoads)
	}
	r.mu.Unlock()
	select {
	case r.slots <- struct{}{}:
		return func() { <-r.slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// set records a tenant's size; 0 forgets it.
func (r *residency) set(t *tenant, size int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sizes == nil {
		r.sizes = map[*tenant]int64{}
	}
	r.bytes.Add(size - r.sizes[t])
	if size == 0 {
		delete(r.sizes, t)
	} else {
		r.sizes[t] = size
	}
}

// hasRoom reports whether a tenant, of the size that it had the last time, fits in
// or should displace others.
func (r *residency) hasRoom(t *tenant, budget int64) bool {
	if r.bytes.Load()+t.size.Load() <= budget {
		return true
	}
	victim, now := r.coldest(t), age()
	return victim == nil || t.heat.at(now) > 2*victim.heat.at(now)
}

// coldest returns the resident tenant that was asked about least, of some and other
// than keep; nil if there is none.
func (r *residency) coldest(keep *tenant) (victim *tenant) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, looked := age(), 0
	for t := range r.sizes { // which begins anywhere
		if t == keep {
			continue
		}
		if victim == nil || t.heat.at(now) < victim.heat.at(now) {
			victim = t
		}
		if looked++; looked == sampled {
			break
		}
	}
	return victim
}
