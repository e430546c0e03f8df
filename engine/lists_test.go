package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
	"unsafe"

	"stonetown/engine"
	"stonetown/tuplestore"
)

const drive = `folder
  parent [folder]
  viewer [user, group, user:*]: this | parent->viewer
document
  parent [folder]
  banned [user]
  viewer: parent->viewer - banned`

func listResources(w *fixture, subject string, more func(*engine.ListResourcesRequest)) ([]string, error) {
	w.Helper()
	req := engine.ListResourcesRequest{Subject: request(subject, "", "x:x").Subject, Type: "document", Action: "view"}
	if more != nil {
		more(&req)
	}
	list, err := w.engine.ListResources(context.Background(), tenant, req)
	if err != nil {
		return nil, err
	}
	return list.IDs, nil
}

// chain writes a chain of folders, with a document in the last one.
func (w *fixture) chain(depth int) {
	w.define(drive)
	for i := range depth {
		w.write(fmt.Sprintf("folder:%d#parent@folder:%d", i+1, i))
	}
	w.write("folder:0#viewer@user:ann", fmt.Sprintf("document:d#parent@folder:%d", depth))
}

// A cold list takes one read for each level of the traversal, and its verification one for
// each level of the check, regardless of the number of resources.
func TestColdListsAreOneReadPerLevel(t *testing.T) {
	const depth = 5
	w := newFixture(t, engine.Config{ResidentBytes: -1})
	w.chain(depth)
	for i := range 2500 {
		w.write(fmt.Sprintf("document:%04d#parent@folder:%d", i, depth))
	}
	before := w.engine.Stats().ColdReads
	ids, err := listResources(w, "user:ann", nil)
	if err != nil || len(ids) != 2501 {
		t.Fatalf("%d resources, %v", len(ids), err)
	}
	traversal, verify := int64(depth+3), int64(3*(depth+3)) // three chunks of a thousand
	if reads := w.engine.Stats().ColdReads - before; reads > traversal+verify {
		t.Errorf("%d reads, want at most %d", reads, traversal+verify)
	}

	before = w.engine.Stats().ColdReads
	subjects, err := w.engine.ListSubjects(context.Background(), tenant, engine.ListSubjectsRequest{
		Resource: tuplestore.Object{Type: "document", ID: "d"}, Action: "view", SubjectType: "user",
	})
	if err != nil || len(subjects.Entries) != 1 {
		t.Fatalf("%v, %v", subjects, err)
	}
	if reads := w.engine.Stats().ColdReads - before; reads > depth+4 {
		t.Errorf("%d reads, want at most %d", reads, depth+4)
	}
}

// A list that exceeds the budget is an error, and never a shorter list.
func TestListsAreCompleteOrFail(t *testing.T) {
	for name, resident := range map[string]int64{"resident": 0, "cold": -1} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, engine.Config{MaxVisits: 2000, ResidentBytes: resident})
			w.define(drive)
			w.write("folder:f#viewer@user:ann")
			for i := range 900 {
				w.write(fmt.Sprintf("document:%d#parent@folder:f", i), fmt.Sprintf("folder:g#viewer@user:%d", i))
			}
			for i := range 300 {
				w.write(fmt.Sprintf("folder:h#viewer@user:%d", i))
			}
			w.write("document:d#parent@folder:g")
			var tooMuch *engine.BudgetError
			if ids, err := listResources(w, "user:ann", nil); !errors.As(err, &tooMuch) {
				t.Errorf("%d resources, %v", len(ids), err)
			}
			list, err := w.engine.ListSubjects(context.Background(), tenant, engine.ListSubjectsRequest{
				Resource: tuplestore.Object{Type: "document", ID: "d"}, Action: "view", SubjectType: "user",
			})
			if !errors.As(err, &tooMuch) {
				t.Errorf("%v, %v", list, err)
			}
			big := engine.ExpandRequest{Resource: tuplestore.Object{Type: "folder", ID: "h"}, Action: "view"}
			if tree, err := w.engine.Expand(context.Background(), tenant, big); err != nil || len(tree.Root.Children[0].Subjects) != 300 {
				t.Errorf("%v, %v", tree, err)
			}
		})
	}
}

// Writes and lists share a graph whose backward index is built during the writes.
func TestListsWhileWriting(t *testing.T) {
	w := newFixture(t, engine.Config{})
	w.define(drive)
	w.write("folder:f#viewer@user:ann")
	w.waitResident(request("user:ann", "view", "folder:f"))
	ctx := context.Background()
	var writers sync.WaitGroup
	for n := range 2 {
		writers.Go(func() {
			for i := range 200 {
				w.write(fmt.Sprintf("document:%d-%03d#parent@folder:f", n, i))
				if i%3 == 0 {
					o := tuplestore.Object{Type: "document", ID: fmt.Sprintf("%d-%03d", n, i)}
					if _, err := w.engine.Unregister(ctx, tenant, o, by); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	for range 50 {
		if _, err := listResources(w, "user:ann", nil); err != nil {
			t.Error(err)
		}
	}
	writers.Wait()
	ids, err := listResources(w, "user:ann", nil)
	if want := 2 * (200 - 67); err != nil || len(ids) != want {
		t.Errorf("%d resources, %v, want %d", len(ids), err, want)
	}
	if !slices.IsSorted(ids) {
		t.Error("not in order")
	}
}

// A list must allocate its IDs once, and a long one use the memory of the last: garbage of long lists
// makes the collector stop checks.
func TestAllocationsOfLists(t *testing.T) {
	w := newFixture(t, engine.Config{})
	w.define("page\n  viewer [user]\n\nleaf\n  viewer [user]")
	lengths := map[string]int{"leaf": 5000, "page": 40_000}
	for typ, n := range lengths {
		for from := 0; from < n; from += 500 {
			var tuples []string
			for i := range 500 {
				tuples = append(tuples, fmt.Sprintf("%s:%d#viewer@user:ann", typ, from+i))
			}
			w.write(tuples...)
		}
	}
	w.waitResident(request("user:ann", "view", "page:0"))
	for typ, most := range map[string]uintptr{"leaf": unsafe.Sizeof("") * 5 / 4, "page": 1} {
		req := engine.ListAllowedRequest{
			Subject: request("user:ann", "", "x:x").Subject, Queries: []engine.ResourceQuery{{Type: typ, Action: "view"}},
		}
		n := lengths[typ]
		list := func() {
			found, err := w.engine.ListAllowed(t.Context(), tenant, req)
			if err != nil {
				t.Error(err)
				return
			}
			if found.Len() != n || found.At(0).ID != "0" || found.At(n - 1).ID[:3] != "999" {
				t.Errorf("%d resources of type %s, want %d in order", found.Len(), typ, n)
			}
			found.Release()
		}
		list()
		result := testing.Benchmark(func(b *testing.B) {
			for b.Loop() {
				list()
			}
		})
		if got := result.AllocedBytesPerOp() / int64(n); got > int64(most) {
			t.Errorf("%d bytes are allocated for each %s of %d, want at most %d", got, typ, n, most)
		}
	}
}

func TestListActions(t *testing.T) {
	w := newFixture(t, engine.Config{})
	w.define(drive + "\n  editor [user]\n  act publish = editor")
	w.write("document:d#parent@folder:f", "folder:f#viewer@user:ann", "document:d#editor@user:ann", "document:d#parent@folder:f")
	list, err := w.engine.ListActions(context.Background(), tenant, engine.ListActionsRequest{
		Subject: tuplestore.Subject{Type: "user", ID: "ann"}, Resource: tuplestore.Object{Type: "document", ID: "d"},
	})
	if want := []string{"edit", "editor", "publish", "view", "viewer"}; err != nil || !slices.Equal(list.Actions, want) {
		t.Errorf("%v, %v, want %v", list, err, want)
	}
}

// An expiry takes effect at its instant without a write, in every mode.
func TestExpiryFollowsTheClock(t *testing.T) {
	for name, resident := range map[string]int64{"resident": 0, "cold": -1} {
		t.Run(name, func(t *testing.T) {
			now := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
			w := newFixture(t, engine.Config{ResidentBytes: resident, Clock: func() time.Time { return now }})
			w.define(drive)
			o := op(t, "folder:f#viewer@user:ann")
			o.ExpiresAt = now.Add(time.Hour)
			if _, err := w.engine.Write(context.Background(), tenant, engine.WriteRequest{Ops: []engine.WriteOp{o}}); err != nil {
				t.Fatal(err)
			}
			w.write("document:d#parent@folder:f")
			req := request("user:ann", "view", "document:d")
			if resident == 0 {
				w.waitResident(req)
			}
			for _, mode := range []engine.ConsistencyMode{engine.Full, engine.MinimizeLatency} {
				req.Consistency.Mode = mode
				now = o.ExpiresAt.Add(-time.Microsecond)
				if _, allowed := ask(t, w.engine, req); !allowed {
					t.Error("denied before its end")
				}
				if ids, err := listResources(w, "user:ann", nil); err != nil || len(ids) != 1 {
					t.Errorf("list before its end: %v, %v", ids, err)
				}
				now = o.ExpiresAt
				if _, allowed := ask(t, w.engine, req); allowed {
					t.Error("allowed after its end")
				}
				if ids, err := listResources(w, "user:ann", nil); err != nil || len(ids) != 0 {
					t.Errorf("list after its end: %v, %v", ids, err)
				}
			}
		})
	}
}
