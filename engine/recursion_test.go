package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"stonetown/engine"
	"stonetown/engine/enginetest"
	"stonetown/tuplestore"
)

const shelves = "shelf\n  parent [shelf]\n  peer [shelf]\n  reader [user]\n" +
	"  viewer: reader - parent->viewer\n  seer: (reader | peer->seer) - parent->seer"

// writeMany writes tuples in one revision.
func (w *fixture) writeMany(count int, tuples func(i int) []string) {
	w.Helper()
	var req engine.WriteRequest
	for i := range count {
		for _, text := range tuples(i) {
			req.Ops = append(req.Ops, op(w, text))
		}
	}
	if _, err := w.engine.Write(context.Background(), tenant, req); err != nil {
		w.Fatal(err)
	}
}

// chain is a shelf whose parent is the next one.
func chain(i int) []string {
	return []string{fmt.Sprintf("shelf:%d#reader@user:ann", i), fmt.Sprintf("shelf:%d#parent@shelf:%d", i, i+1)}
}

// A chain of exclusions takes one pass from its end. Each question about the chain finds a
// cycle at the end.
func TestDeepChainsOfExclusions(t *testing.T) {
	const depth = 10_000
	w := newFixture(t, engine.Config{})
	w.define(shelves)
	w.writeMany(depth, chain)
	w.write(fmt.Sprintf("shelf:%d#reader@user:bob", depth)) // registers it
	w.waitResident(request("user:bob", "reader", fmt.Sprintf("shelf:%d", depth)))
	if _, allowed := ask(t, w.engine, request("user:ann", "viewer", "shelf:1")); !allowed {
		t.Errorf("shelf 1 of %d: denied, want allowed as every odd one is", depth)
	}
	if _, allowed := ask(t, w.engine, request("user:ann", "viewer", "shelf:0")); allowed {
		t.Errorf("shelf 0 of %d: allowed, want denied as every even one is", depth)
	}

	const start = depth - depth/100
	w.write(fmt.Sprintf("shelf:%d#parent@shelf:%d", depth-1, start))
	req := request("user:ann", "viewer", "shelf:0")
	for i := range 1000 {
		req.Queries = append(req.Queries, engine.Query{Resource: tuplestore.Object{Type: "shelf", ID: fmt.Sprint(i)}, Action: "viewer"})
	}
	res, err := w.engine.Check(context.Background(), tenant, req)
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range res.Decisions {
		// An even number of shelves in a cycle depends on itself through an even number of
		// negations, and either half would be consistent.
		cycle, ok := errors.AsType[*engine.NegativeCycleError](d.Err)
		if want := fmt.Sprintf("shelf:%d#viewer", start); !ok || cycle.Node.String() != want {
			t.Fatalf("decision %d: %v, want a *NegativeCycleError that names %s", i, d.Err, want)
		}
	}
}

// Settling takes one pass for each level if shelves that are peers of each other depend on
// the level below. The work budget bounds it.
func TestRecursiveExclusionsAreBounded(t *testing.T) {
	const depth = 400
	for limit, exceeds := range map[int]bool{50_000: true, 10_000_000: false} {
		w := newFixture(t, engine.Config{MaxVisits: limit})
		w.define(shelves)
		w.writeMany(depth, func(i int) []string {
			return []string{
				fmt.Sprintf("shelf:in%d#reader@user:ann", i), fmt.Sprintf("shelf:in%d#parent@shelf:a%d", i, i+1),
				fmt.Sprintf("shelf:a%d#peer@shelf:in%d", i, i), fmt.Sprintf("shelf:a%d#peer@shelf:b%d", i, i), fmt.Sprintf("shelf:b%d#peer@shelf:a%d", i, i),
			}
		})
		w.waitResident(request("user:ann", "reader", "shelf:a0"))
		res, err := w.engine.Check(context.Background(), tenant, request("user:ann", "seer", "shelf:a1"))
		if _, exceeded := errors.AsType[*engine.BudgetError](err); exceeded != exceeds {
			t.Errorf("limit %d: %v", limit, err)
		}
		if !exceeds && (err != nil || res.Decisions[0].Err != nil || !res.Decisions[0].Allowed) {
			t.Errorf("limit %d: %v, %v, want allowed", limit, res, err)
		}
	}
}

// Cold, each level of the recursion is one read.
func TestColdRecursiveExclusions(t *testing.T) {
	const depth = 20
	w := newFixture(t, engine.Config{ResidentBytes: -1})
	w.define(shelves)
	w.writeMany(depth, chain)
	before := w.engine.Stats().ColdReads
	if _, allowed := ask(t, w.engine, request("user:ann", "viewer", "shelf:1")); !allowed {
		t.Error("shelf 1 is denied")
	}
	// A shelf is a goal for its viewers, one for the exclusion and one for each side.
	if reads := w.engine.Stats().ColdReads - before; reads > 3*depth+3 {
		t.Errorf("%d reads for %d levels", reads, depth)
	}
}

// The message of the error names a node of the cycle.
func TestNegativeCycleError(t *testing.T) {
	w := newFixture(t, engine.Config{})
	w.define(shelves)
	w.write("shelf:b#reader@user:ann", "shelf:a#reader@user:ann", "shelf:a#parent@shelf:a", "shelf:b#parent@shelf:a")
	res, err := w.engine.Check(context.Background(), tenant, request("user:ann", "viewer", "shelf:b"))
	if err != nil {
		t.Fatal(err)
	}
	const want = "the answer depends on its own negation: relations lead from shelf:a#viewer through an exclusion back to it"
	if got := res.Decisions[0].Err; got == nil || got.Error() != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if v, err := enginetest.VerdictOf(false, res.Decisions[0].Err); err != nil || v != enginetest.Cyclic {
		t.Errorf("verdict %q, %v", v, err)
	}
	// All actions are asked, so that one of them without an answer ends the list.
	_, err = w.engine.ListActions(context.Background(), tenant, engine.ListActionsRequest{
		Subject: tuplestore.Subject{Type: "user", ID: "ann"}, Resource: tuplestore.Object{Type: "shelf", ID: "b"},
	})
	if _, ok := errors.AsType[*engine.NegativeCycleError](err); !ok {
		t.Errorf("list of actions: %v, want a *NegativeCycleError", err)
	}
}
