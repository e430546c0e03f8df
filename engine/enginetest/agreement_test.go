package enginetest

import (
	"context"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/schema"
	"stonetown/tuplestore"
)

var (
	seed   = flag.Uint64("seed", 0, "seed of the random tests; 0 draws one")
	rounds = flag.Int("rounds", 40, "random schemas per backend and temperature; 40 take less than a minute")
)

// randomly runs a test with a generator whose seed is printed on failure.
func randomly(t *testing.T, test func(t *testing.T, r *rand.Rand)) {
	s := *seed
	if s == 0 {
		s = uint64(time.Now().UnixNano())
	}
	before, cyclicBefore := compared.Load(), cyclic.Load()
	t.Cleanup(func() {
		t.Logf("%d decisions and lists compared with the oracle, of which %d depended on their own negation",
			compared.Load()-before, cyclic.Load()-cyclicBefore)
		if t.Failed() {
			t.Logf("repeat with -seed=%d", s)
		}
	})
	test(t, rand.New(rand.NewPCG(s, s)))
}

// untilShown yields the numbers of n rounds and, while they lack something that the test has to
// show, of more, up to 20 times as many.
func untilShown(n int, lacks func() bool) iter.Seq[int] {
	return func(yield func(int) bool) {
		for round := 0; round < n || lacks() && round < 20*n; round++ {
			if !yield(round) {
				return
			}
		}
	}
}

// facts are tuples with their qualifiers.
type facts map[tuplestore.Tuple]tuplestore.Qualifier

// history has a tenant's tuples at each revision.
type history struct {
	mu     sync.Mutex
	states map[tuplestore.Revision]facts
	newest tuplestore.Revision
	acks   []ack
}

// ack is the time at which a revision was acknowledged.
type ack struct {
	revision tuplestore.Revision
	at       time.Time
}

// acknowledgedBefore returns the newest revision acknowledged before an instant.
func (h *history) acknowledgedBefore(at time.Time) tuplestore.Revision {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range slices.Backward(h.acks) {
		if a.at.Before(at) {
			return a.revision
		}
	}
	return 0
}

func (h *history) at(rev tuplestore.Revision) facts {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.states[rev]
}

// writer draws writes and records their results.
type writer struct {
	universe
	engine  *engine.Engine
	tenant  string
	tuples  facts
	history *history
	acked   *atomic.Int64
	// newest is the token of the newest revision that was acknowledged.
	newest *atomic.Value
	// concurrent: the revision of an error is unknown.
	concurrent bool
	// failures counts requests that were not answered, where that may happen.
	failures *atomic.Int64
}

// newTenant defines random types in a tenant and returns its writer.
func newTenant(ctx context.Context, t *testing.T, e *engine.Engine, r *rand.Rand, id string) *writer {
	t.Helper()
	return newTenantOf(ctx, t, e, r, id, RandomTypes(r))
}

// newTenantOf defines types in a tenant and returns its writer.
func newTenantOf(ctx context.Context, t *testing.T, e *engine.Engine, r *rand.Rand, id string, types []schema.Type) *writer {
	t.Helper()
	var token string
	for _, typ := range types {
		_, _, tok, err := e.PutType(ctx, id, typ, by)
		if err != nil {
			t.Fatalf("define %s: %v", typ.Name, err)
		}
		token = tok
	}
	compiled, err := schema.Compile(types)
	if err != nil {
		t.Fatal(err)
	}
	w := &writer{
		universe: universe{rand: r, types: types, compiled: compiled, objects: 4, users: 5},
		engine:   e, tenant: id, tuples: facts{},
		history: &history{states: map[tuplestore.Revision]facts{}},
		acked:   new(atomic.Int64),
		newest:  new(atomic.Value),
	}
	w.record(t, token)
	return w
}

// record records that the model's state was acknowledged with a token.
func (w *writer) record(t *testing.T, token string) {
	t.Helper()
	rev := revision(t, token)
	w.history.mu.Lock()
	w.history.states[rev] = maps.Clone(w.tuples)
	w.history.newest = rev
	w.history.acks = append(w.history.acks, ack{rev, time.Now()})
	w.history.mu.Unlock()
	w.acked.Store(int64(rev))
	w.newest.Store(token)
}

// write applies a random batch through the engine and to the model.
func (w *writer) write(ctx context.Context, t *testing.T) {
	t.Helper()
	if w.rand.IntN(12) == 0 {
		w.unregister(ctx, t)
		return
	}
	var ops []engine.WriteOp
	after := maps.Clone(w.tuples)
	for range 1 + w.rand.IntN(6) {
		op, ok := w.op()
		if !ok {
			continue
		}
		f := factOf(op)
		if _, exists := after[f.Tuple]; exists && w.rand.IntN(2) == 0 {
			op.Delete = true
			delete(after, f.Tuple)
		} else {
			after[f.Tuple] = f.Qualifier
			after[tuplestore.Presence(f.Object)] = tuplestore.Qualifier{}
		}
		ops = append(ops, op)
	}
	if len(ops) == 0 {
		return
	}
	// The state of a revision is recorded before it is visible.
	w.history.mu.Lock()
	w.history.states[w.history.newest+1] = after
	w.history.mu.Unlock()
	res, err := w.engine.Write(ctx, w.tenant, engine.WriteRequest{Origin: by, Ops: ops})
	if err != nil {
		w.failed(t, "write %v: %v", ops, err)
		return
	}
	w.tuples = after
	w.record(t, res.Token)
}

// failed records a request that was not answered.
func (w *writer) failed(t *testing.T, format string, args ...any) {
	t.Helper()
	if w.failures == nil {
		t.Errorf(format, args...)
		return
	}
	w.failures.Add(1)
}

func (w *writer) unregister(ctx context.Context, t *testing.T) {
	t.Helper()
	o := w.object()
	after := maps.Clone(w.tuples)
	maps.DeleteFunc(after, func(tuple tuplestore.Tuple, _ tuplestore.Qualifier) bool {
		return tuple.Object == o || !tuple.IsPresence() && tuple.Subject.Object() == o
	})
	if _, registered := w.tuples[tuplestore.Presence(o)]; !registered {
		var missing *engine.ResourceNotFoundError
		if _, err := w.engine.Unregister(ctx, w.tenant, o, by); err == nil {
			t.Errorf("unregister %s, which is not registered, succeeded", o)
		} else if !errors.As(err, &missing) {
			w.failed(t, "unregister %s, which is not registered: %v", o, err)
		}
		return
	}
	w.history.mu.Lock()
	w.history.states[w.history.newest+1] = after
	w.history.mu.Unlock()
	token, err := w.engine.Unregister(ctx, w.tenant, o, by)
	if err != nil {
		w.failed(t, "unregister %s: %v", o, err)
		return
	}
	w.tuples = after
	w.record(t, token)
}

func revision(t *testing.T, token string) tuplestore.Revision {
	t.Helper()
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(text), "|")
	n, err := strconv.ParseInt(parts[len(parts)-1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return tuplestore.Revision(n)
}

// TestAgreement alternates writes and checks.
func TestAgreement(t *testing.T) {
	agreement := func(t *testing.T, e *engine.Engine) {
		randomly(t, func(t *testing.T, r *rand.Rand) {
			ctx := context.Background()
			for round := range *rounds {
				w := newTenant(ctx, t, e, r, fmt.Sprintf("tnt_%d", round))
				for range 15 {
					w.write(ctx, t)
					w.renameSometimes(ctx, t)
					for range 5 {
						w.compare(ctx, t, &w.universe, engine.Consistency{})
					}
				}
				if t.Failed() {
					return
				}
			}
		})
	}
	everywhere(t, func(t *testing.T, e *engine.Engine, _ tuplestore.Store) { agreement(t, e) })
	underLeases(t, agreement)
}

// TestConcurrentAgreement checks with every consistency while a writer writes.
func TestConcurrentAgreement(t *testing.T) {
	agreement := func(t *testing.T, e *engine.Engine) {
		randomly(t, func(t *testing.T, r *rand.Rand) {
			ctx := context.Background()
			for round := range max(1, *rounds/5) {
				w := newTenant(ctx, t, e, r, fmt.Sprintf("tnt_%d", round))
				// Bounded staleness may reach back before the types were defined.
				w.compare(ctx, t, &w.universe, engine.Consistency{})
				w.concurrent = true
				var checkers sync.WaitGroup
				done := make(chan struct{})
				for n := range 4 {
					u := w.universe
					u.rand = rand.New(rand.NewPCG(r.Uint64(), uint64(n)))
					checkers.Go(func() {
						for {
							select {
							case <-done:
								return
							default:
							}
							mode := engine.Consistency{}
							if n == 3 {
								mode.Mode = engine.MinimizeLatency
							}
							w.compare(ctx, t, &u, mode)
						}
					})
				}
				for range 40 {
					w.write(ctx, t)
				}
				close(done)
				checkers.Wait()
				if t.Failed() {
					return
				}
			}
		})
	}
	everywhere(t, func(t *testing.T, e *engine.Engine, _ tuplestore.Store) { agreement(t, e) })
	underLeases(t, agreement)
}
