package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/engine/enginetest"
	"stonetown/internal/fair"
	"stonetown/tuplestore"
)

// endless makes a tenant in which a check evaluates a condition of some 10 ms for each
// of 2,000 teams, and returns the check.
func endless(t *testing.T, e *engine.Engine, tenantID string) engine.CheckRequest {
	t.Helper()
	types, err := enginetest.ParseSchema(`
team
  member [user]
doc
  viewer [user, team#member]
  when loops(n int, l list<int>): n >= 0 && l.all(x, l.all(y, x + y > n))`)
	if err != nil {
		t.Fatal(err)
	}
	for _, typ := range types {
		if _, _, _, err := e.PutType(t.Context(), tenantID, typ, by); err != nil {
			t.Fatal(err)
		}
	}
	const teams = 2000
	req := engine.WriteRequest{Ops: []engine.WriteOp{op(t, "doc:open#viewer@user:bob"), op(t, "doc:open#viewer@user:ann")}}
	for i := range teams {
		grant := op(t, fmt.Sprintf("doc:1#viewer@team:%d#member", i))
		grant.Condition, grant.Context = "loops", fmt.Appendf(nil, `{"n":%d}`, i)
		req.Ops = append(req.Ops, grant, op(t, fmt.Sprintf("team:%d#member@user:other", i)))
	}
	if _, err := e.Write(t.Context(), tenantID, req); err != nil {
		t.Fatal(err)
	}
	list := make([]any, 200)
	for i := range list {
		list[i] = json.Number(fmt.Sprint(teams + i))
	}
	ask := request("user:ann", "viewer", "doc:1")
	ask.Context = map[string]any{"l": list}
	return ask
}

// becomeResident checks until the tenants are resident.
func becomeResident(t *testing.T, e *engine.Engine, tenants ...string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); e.Stats().Loads < int64(len(tenants)); {
		if time.Now().After(deadline) {
			t.Fatal("the tenants did not become resident")
		}
		for _, id := range tenants {
			if _, err := e.Check(t.Context(), id, request("user:bob", "viewer", "doc:open")); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Conditions and visits have one budget, and the error names the one that spent most of it.
func TestConditionsCountAsWork(t *testing.T) {
	for name, resident := range map[string]int64{"resident": 0, "cold": -1} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, engine.Config{ResidentBytes: resident})
			ask := endless(t, w.engine, tenant)
			if resident == 0 {
				becomeResident(t, w.engine, tenant)
			}
			list := engine.ListSubjectsRequest{Resource: ask.Queries[0].Resource, Action: "viewer", SubjectType: "user", Context: ask.Context}
			_, checked := w.engine.Check(t.Context(), tenant, ask)
			_, listed := w.engine.ListSubjects(t.Context(), tenant, list)
			for _, err := range []error{checked, listed} {
				budget, ok := errors.AsType[*engine.BudgetError](err)
				if !ok || budget.Spent() != "conditions" || budget.OnConditions < 1_000_000 || !strings.Contains(err.Error(), "conditions") {
					t.Errorf("got %v, want a *BudgetError that names conditions", err)
				}
			}
		})
	}
}

// Work ends with the context of its request.
func TestWorkEndsWithItsContext(t *testing.T) {
	w := newFixture(t, engine.Config{MaxVisits: 1 << 40})
	ask := endless(t, w.engine, tenant)
	becomeResident(t, w.engine, tenant)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := w.engine.Check(ctx, tenant, ask); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// While heavy requests of one tenant take all places for them, another tenant's checks are
// answered, and its own heavy request waits without a lock that its writes need. The queue
// has a limit.
func TestHeavyRequestsWait(t *testing.T) {
	w := newFixture(t, engine.Config{MaxVisits: 1 << 40})
	const greedy, modest = "tnt_greedy", "tnt_modest"
	ask := endless(t, w.engine, greedy)
	endless(t, w.engine, modest)
	becomeResident(t, w.engine, greedy, modest)

	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	waiting := 32 // of a caller
	refused := make(chan *fair.ExhaustedError, 1)
	for range waiting + fair.HeavyPlaces() + 1 {
		wg.Go(func() {
			_, err := w.engine.Check(ctx, greedy, ask)
			if exhausted, ok := errors.AsType[*fair.ExhaustedError](err); ok && ctx.Err() == nil {
				select {
				case refused <- exhausted:
				default:
				}
			}
		})
	}
	if e := <-refused; e.Share != fair.OfCaller || e.Limit != int64(waiting) {
		t.Errorf("%+v", e)
	}
	wg.Go(func() { _, _ = w.engine.Check(ctx, modest, ask) })
	for i := range 100 {
		id := fmt.Sprintf("doc:new%d", i)
		if _, err := w.engine.Write(t.Context(), modest, engine.WriteRequest{Ops: []engine.WriteOp{op(t, id+"#viewer@user:ann")}}); err != nil {
			t.Fatal(err)
		}
		res, err := w.engine.Check(t.Context(), modest, request("user:ann", "viewer", id))
		if err != nil || !res.Decisions[0].Allowed {
			t.Fatalf("%+v, %v", res, err)
		}
	}
}

// A long list needs a place for heavy work before it sorts its candidates; a short one is
// answered without.
func TestLongListsAreHeavy(t *testing.T) {
	w := newFixture(t, engine.Config{MaxVisits: 1 << 40})
	const greedy = "tnt_greedy"
	ask := endless(t, w.engine, greedy)
	w.define("doc\n  viewer [user]")
	for doc, members := range map[string]int{"long": 3000, "short": 1000} {
		for chunk := range slices.Chunk(slices.Collect(func(yield func(string) bool) {
			for i := range members {
				if !yield(fmt.Sprintf("doc:%s#viewer@user:%d", doc, i)) {
					return
				}
			}
		}), 500) {
			w.write(chunk...)
		}
	}
	list := func(doc string, wait time.Duration) (int, error) {
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		defer cancel()
		got, err := w.engine.ListSubjects(ctx, tenant, engine.ListSubjectsRequest{
			Resource: tuplestore.Object{Type: "doc", ID: doc}, Action: "viewer", SubjectType: "user",
		})
		if err != nil {
			return 0, err
		}
		return len(got.Entries), nil
	}
	if n, err := list("long", 10*time.Second); n != 3000 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for range fair.HeavyPlaces() {
		wg.Go(func() { _, _ = w.engine.Check(ctx, greedy, ask) })
	}
	for deadline := time.Now().Add(10 * time.Second); ; {
		_, err := list("long", 200*time.Millisecond)
		if _, refused := errors.AsType[*fair.ExhaustedError](err); refused || errors.Is(err, context.DeadlineExceeded) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("a long list is answered while all places for heavy work are taken")
		}
	}
	if n, err := list("short", 10*time.Second); n != 1000 || err != nil {
		t.Errorf("short list: %d, %v", n, err)
	}
}

// Attempts to load a tenant that does not fit take a small part of the time. When the
// tenant has shrunk, it is loaded at once.
func TestTooLargeTenantsAreLoadedWhenTheyShrink(t *testing.T) {
	w := newFixture(t, engine.Config{ResidentBytes: 20_000})
	scans := &countedScans{Store: w.store}
	e := open(t, scans, engine.Config{ResidentBytes: 20_000})
	w.engine = e
	w.define("doc\n  viewer [user]")
	var tuples []string
	for i := range 300 {
		tuples = append(tuples, fmt.Sprintf("doc:1#viewer@user:%d", i))
	}
	w.write(tuples...)
	check := func() {
		t.Helper()
		if _, allowed := ask(t, e, request("user:1", "viewer", "doc:1")); !allowed {
			t.Fatal("denied")
		}
	}
	for scans.ended.Load() == 0 {
		check()
	}
	for range 1000 {
		check()
	}
	if n := scans.begun.Load(); n != 1 {
		t.Errorf("%d scans of a tenant that does not fit", n)
	}
	for _, tuple := range tuples[100:] {
		if err := w.remove(tuple); err != nil {
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(10 * time.Second); e.Stats().Loads == 0; {
		if time.Now().After(deadline) {
			t.Fatal("the tenant fits again and is not resident")
		}
		check()
	}
}

// countedScans is a store that counts the scans of its snapshots.
type countedScans struct {
	tuplestore.Store
	begun, ended atomic.Int64 // scans begun and ended
}

type countedSnapshot struct {
	tuplestore.Snapshot
	store *countedScans
}

func (s *countedScans) Snapshot(tenant string, rev tuplestore.Revision) tuplestore.Snapshot {
	return countedSnapshot{s.Store.Snapshot(tenant, rev), s}
}

func (s countedSnapshot) Scan(ctx context.Context, f tuplestore.Filter) iter.Seq2[tuplestore.Record, error] {
	return func(yield func(tuplestore.Record, error) bool) {
		s.store.begun.Add(1)
		defer s.store.ended.Add(1)
		s.Snapshot.Scan(ctx, f)(yield)
	}
}
