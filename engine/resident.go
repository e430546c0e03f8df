package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"stonetown/engine/internal/arena"
	"stonetown/engine/internal/graph"
	"stonetown/engine/internal/names"
	"stonetown/engine/internal/program"
	"stonetown/tuplestore"
)

// residency accounts for the memory of the resident graphs, or for the files of those that are
// mapped. If that does not suffice for all tenants, those with the most requests stay: a tenant replaces others only if it gets more
// than twice as many requests. Otherwise tenants with alternating requests would replace
// each other, and all time would be spent on loading.
type residency struct {
	bytes atomic.Int64 // estimated, all graphs
	scant atomic.Bool  // so much memory is used that requests of tenants are counted

	mu      sync.Mutex
	sizes   map[*tenant]int64
	changed func(bytes int64) // if not nil, called when bytes changes
	slots   chan struct{}     // bounds how many graphs are loaded at once
}

const (
	concurrentLoads = 2
	// retryAfter is how long a tenant stays cold after its load failed, at least.
	retryAfter = time.Minute
	// retryShare bounds the time spent on loads of tenants that turn out too large: one
	// part in retryShare.
	retryShare = 100
	// retryAtMost is how long such a tenant stays cold, unless it shrinks.
	retryAtMost = 24 * time.Hour
	// shrunkBy is the part of its tuples that a tenant has to lose to be loaded earlier:
	// one part in shrunkBy.
	shrunkBy = 10
	// partsShare is the part of the memory that graphs leave to parts of tenants that are not
	// resident: one part in partsShare.
	partsShare = 8
	// reconsiderAfter is how long a tenant stays cold because others get as many requests.
	reconsiderAfter = time.Second
	// sampled is the number of resident tenants among which the coldest is chosen.
	sampled = 16
)

// heat is the rate of a tenant's requests: a count that is halved every heatAge. Of
// simultaneous requests, some may not be counted.
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

// startLoading loads the tenant's graph in the background, unless that is in progress, failed
// recently, or would displace tenants with as many requests. It goes into a mapped file if it does
// not fit into memory. One that is in such a file is loaded again if memory has become free.
func (t *tenant) startLoading(isMapped bool) {
	e := t.engine
	if e.budget < 0 || time.Now().UnixNano() < t.retryAt.Load() && !t.tooLarge.hasShrunk() || !t.loading.CompareAndSwap(false, true) {
		return
	}
	var inMemory, inFile bool
	if isMapped {
		inMemory = e.resident.fits(t, e.budget)
	} else {
		inMemory, inFile = e.resident.hasRoom(t, e.budget), e.mapped.hasRoom(t, e.mappedBudget)
	}
	if !inMemory && !inFile {
		t.retryAt.Store(time.Now().Add(reconsiderAfter).UnixNano())
		t.loading.Store(false)
		return
	}
	e.loads.Go(func() {
		defer t.loading.Store(false)
		err := errTooLarge
		if inMemory {
			err = t.loadAndNote(e.background, false)
		}
		if inFile && errors.Is(err, errTooLarge) {
			_ = t.loadAndNote(e.background, true)
		}
	})
}

// loadAndNote loads the tenant's graph, and notes for later loads if that fails.
func (t *tenant) loadAndNote(ctx context.Context, mapped bool) error {
	e, began := t.engine, time.Now()
	tuples, err := t.load(ctx, mapped)
	switch {
	case err == nil && mapped, ctx.Err() != nil:
	case err == nil:
		t.tooLarge.forget()
	case errors.Is(err, errTooLarge):
		e.stats.loadsTooLarge.Add(1)
		wait := t.tooLarge.note(tuples, time.Since(began))
		t.retryAt.Store(time.Now().Add(wait).UnixNano())
		e.logger.Warn("tenant does not fit into memory", "tenant", t.id, "mapped", mapped, "error", err, "tuples", tuples, "retry_after", wait)
	default:
		t.tooLarge.forget()
		e.stats.loadsFailed.Add(1)
		t.retryAt.Store(time.Now().Add(retryAfter).UnixNano())
		e.logger.Warn("tenant stays cold", "tenant", t.id, "mapped", mapped, "error", err)
	}
	return err
}

// tooLarge records that a tenant did not fit. To load such a tenant takes long and is
// wasted, so the time before the next attempt is proportional to that of the last one, and
// doubles with each attempt. A tenant that has lost many tuples is loaded at once.
type tooLarge struct {
	tuples  atomic.Int64 // read before the load was abandoned; 0: not known to be too large
	deleted atomic.Int64 // since then, less the created ones
	times   int          // consecutive attempts; guarded by tenant.loading
}

// note records an attempt, and returns the time before the next.
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

// count counts the tuples that a write changed.
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

// load makes the tenant resident, from its file if that is of use. It returns the number of tuples
// that it read from the store.
func (t *tenant) load(ctx context.Context, mapped bool) (tuples int64, err error) {
	release, err := t.engine.resident.admit(ctx)
	if err != nil {
		return tuples, err
	}
	defer release()
	tuples, err = t.restore(ctx, mapped)
	switch {
	case err == nil:
		t.engine.stats.loadsRestored.Add(1)
		t.account()
		return 0, nil
	case errors.Is(err, errTooLarge), ctx.Err() != nil:
		return tuples, err
	case !errors.Is(err, os.ErrNotExist):
		t.engine.logger.Warn("the graph in a tenant's file is not used", "tenant", t.id, "error", err)
	}
	err = errRenamed
	for errors.Is(err, errRenamed) {
		tuples, err = t.loadGraph(ctx, mapped)
	}
	if err != nil {
		return tuples, err
	}
	t.saved.Store(0) // the file, if there is one, was of no use
	t.engine.stats.loads.Add(1)
	t.account()
	return tuples, nil
}

// memory returns the memory for a graph: a new arena, or nil for the heap.
func (t *tenant) memory(mapped bool) (*arena.Arena, error) {
	if !mapped {
		return nil, nil
	}
	return t.engine.files.Arena(t.engine.mappedBudget)
}

// loadGraph reads the tuples from the store. The error is errRenamed if the tenant renamed
// something meanwhile.
func (t *tenant) loadGraph(ctx context.Context, mapped bool) (tuples int64, err error) {
	e := t.engine
	head, document, err := e.store.Latest(ctx, t.id)
	if err != nil {
		return tuples, err
	}
	compiled, err := compileDocument(document)
	if err != nil {
		return tuples, err
	}
	memory, err := t.memory(mapped)
	if err != nil {
		return tuples, err
	}
	at, g := t.positionAt(head, compiled), graph.NewIn(memory)
	for record, err := range e.snapshot(t.id, at).Scan(ctx, tuplestore.Filter{Presence: tuplestore.WithPresence}) {
		if err != nil {
			return tuples, err
		}
		tuples++
		g.Add(record.Fact)
		if !mapped && g.Bytes() > e.budget {
			return tuples, errTooLarge
		}
		if err := memory.Err(); err != nil {
			return tuples, fmt.Errorf("%w: %w", errTooLarge, err)
		}
	}
	return tuples, t.bringForward(ctx, g, at, head.Revision)
}

// bringForward moves a graph from a position to newest, at least, and publishes it. The error is
// errRenamed if it cannot follow a rename.
func (t *tenant) bringForward(ctx context.Context, g *graph.Graph, at position, newest tuplestore.Revision) error {
	head := tuplestore.Head{Revision: at.revision, SchemaRevision: at.schemaRevision, Epoch: at.epoch}
	compiled := at.compiled
	for head.Revision < newest || !t.publish(g, t.positionAt(head, compiled)) {
		commits, err := t.engine.store.Changes(ctx, t.id, head.Revision, changesAtOnce)
		if err != nil {
			return err
		}
		for i := range commits {
			head.Revision = commits[i].Revision
			if commits[i].Schema != nil {
				head.SchemaRevision = head.Revision
				after, err := compileDocument(commits[i].Schema)
				if err != nil {
					return err
				}
				if !names.Rename(g, compiled, after) {
					return errRenamed
				}
				compiled = after
			}
			for _, change := range names.Changes(&commits[i], compiled) {
				g.Apply(change)
			}
		}
	}
	return nil
}

// publish makes the graph resident, unless it is behind the position that the tenant has
// answered from. If that is forgotten, the tenant is idle, and stays as it is: a request could
// just have read a newer one.
func (t *tenant) publish(g *graph.Graph, at position) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case !t.position.known:
		return true
	case at.epoch == t.position.epoch && at.revision < t.position.revision:
		return false
	}
	t.position = at
	t.graph = g
	t.program = program.New(at.compiled, g)
	t.endEra()
	return true
}

// drop makes the tenant cold.
func (t *tenant) drop() {
	t.mu.Lock()
	t.graph, t.program = nil, nil
	t.mu.Unlock()
	t.engine.resident.set(t, 0)
	t.engine.mapped.set(t, 0)
}

// isMapped reports whether the graph is in a mapped file. mu is held.
func (t *tenant) isMapped() bool { return t.graph != nil && t.graph.Arena() != nil }

// account records the graph's size. While all graphs together exceed the budget of where it is, it
// drops others, and then the tenant's own.
func (t *tenant) account() {
	e := t.engine
	t.mu.RLock()
	var size, inMemory, inFile int64
	full := false
	if t.graph != nil {
		size = t.graph.Bytes()
		if memory := t.graph.Arena(); memory != nil {
			inFile, full = memory.Bytes(), memory.Err() != nil
		} else {
			inMemory = size
		}
	}
	t.mu.RUnlock()
	e.resident.set(t, inMemory)
	e.mapped.set(t, inFile)
	t.size.Store(size)
	e.resident.scant.Store(e.resident.bytes.Load() > e.budget/2 || e.mapped.bytes.Load() > 0)
	switch {
	case full:
		t.retryAt.Store(time.Now().Add(retryAfter).UnixNano())
		t.drop()
	case inFile > 0:
		e.mapped.shrink(t, e.mappedBudget)
	default:
		e.resident.shrink(t, e.budget)
	}
}

// shrink drops graphs while all together exceed a budget: others, and then that of keep.
func (r *residency) shrink(keep *tenant, budget int64) {
	for r.bytes.Load() > budget {
		victim := r.coldest(keep)
		if victim == nil {
			victim = keep
		}
		victim.drop()
		if victim == keep {
			keep.retryAt.Store(time.Now().Add(retryAfter).UnixNano())
			return
		}
	}
}

// admit waits for a slot for loading.
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
	if grown := size - r.sizes[t]; grown != 0 {
		total := r.bytes.Add(grown)
		if r.changed != nil {
			r.changed(total)
		}
	}
	if size == 0 {
		delete(r.sizes, t)
	} else {
		r.sizes[t] = size
	}
}

// hasRoom reports whether a tenant fits, with the size that it last had, or should displace
// others.
func (r *residency) hasRoom(t *tenant, budget int64) bool {
	if r.fits(t, budget) {
		return true
	}
	if budget <= 0 {
		return false
	}
	victim, now := r.coldest(t), age()
	return victim == nil || t.heat.at(now) > 2*victim.heat.at(now)
}

// fits reports whether a tenant fits, with the size that it last had, without displacing others.
func (r *residency) fits(t *tenant, budget int64) bool {
	return budget > 0 && r.bytes.Load()+t.size.Load() <= budget
}

// coldest returns the resident tenant with the fewest requests in a sample without keep;
// nil if there is none.
func (r *residency) coldest(keep *tenant) (victim *tenant) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, looked := age(), 0
	for t := range r.sizes { // in random order
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
