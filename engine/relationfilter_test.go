package engine_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"stonetown/engine"
	"stonetown/tuplestore"
)

// TestDeleteRelations repeats a deletion, as a process does that takes over from one
// that ended before it answered, and runs two deletions concurrently.
func TestDeleteRelations(t *testing.T) {
	w := newFixture(t, engine.Config{})
	w.define("doc\n  viewer [user]\n  owner [user]")
	const n = 60
	for i := range n {
		w.write(fmt.Sprintf("doc:%d#viewer@user:ann", i))
	}
	w.write("doc:1#owner@user:ann", "doc:1#viewer@user:bob")
	deletion := func(commit string, limit int) engine.RelationDeletion {
		return engine.RelationDeletion{
			RelationFilter: engine.RelationFilter{Subject: tuplestore.Subject{Type: "user", ID: "ann"}}, Limit: limit,
			Keep:   func(_ tuplestore.Object, relation string) bool { return relation == "owner" },
			Origin: func([]engine.WriteOp) engine.Origin { return engine.Origin{CommitID: commit} },
		}
	}
	for range 2 {
		got, err := w.engine.DeleteRelations(t.Context(), tenant, deletion("once", 10))
		if err != nil || got.Count != 10 || got.Next == nil {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	var deleted atomic.Int64
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for {
				got, err := w.engine.DeleteRelations(t.Context(), tenant, deletion("", 7))
				if err != nil {
					t.Error(err)
					return
				}
				deleted.Add(int64(got.Count))
				if got.Next == nil {
					return
				}
			}
		})
	}
	group.Wait()
	if deleted.Load() != n-10 {
		t.Errorf("%d deleted, want %d", deleted.Load(), n-10)
	}
	left, _, err := w.engine.FindRelations(t.Context(), tenant, deletion("", 0).RelationFilter, nil, 10)
	if err != nil || len(left) != 1 || left[0].Relation != "owner" {
		t.Errorf("left %v, %v", left, err)
	}
}
