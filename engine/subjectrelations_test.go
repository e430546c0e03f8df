package engine_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"stonetown/engine"
	"stonetown/tuplestore"
)

// TestDeleteSubjectRelations repeats a deletion, as a process does that takes over from one
// that ended before it answered, and runs two deletions concurrently.
func TestDeleteSubjectRelations(t *testing.T) {
	w := newFixture(t, engine.Config{})
	w.define("doc\n  viewer [user]\n  owner [user]")
	const n = 60
	for i := range n {
		w.write(fmt.Sprintf("doc:%d#viewer@user:ann", i))
	}
	w.write("doc:1#owner@user:ann", "doc:1#viewer@user:bob")
	deletion := func(commit string, limit int) engine.SubjectDeletion {
		return engine.SubjectDeletion{
			SubjectFilter: engine.SubjectFilter{Subject: tuplestore.Object{Type: "user", ID: "ann"}}, Limit: limit,
			Keep:   func(_ tuplestore.Object, relation string) bool { return relation == "owner" },
			Origin: func([]engine.WriteOp) engine.Origin { return engine.Origin{CommitID: commit} },
		}
	}
	for range 2 {
		got, err := w.engine.DeleteSubjectRelations(t.Context(), tenant, deletion("once", 10))
		if err != nil || got.Count != 10 || !got.More {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	var deleted atomic.Int64
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for {
				got, err := w.engine.DeleteSubjectRelations(t.Context(), tenant, deletion("", 7))
				var busy *tuplestore.BusyError
				if errors.As(err, &busy) {
					continue // other deletions came first in every attempt
				}
				if err != nil {
					t.Error(err)
					return
				}
				deleted.Add(int64(got.Count))
				if !got.More {
					return
				}
			}
		})
	}
	group.Wait()
	if deleted.Load() != n-10 {
		t.Errorf("%d deleted, want %d", deleted.Load(), n-10)
	}
	left, err := w.engine.SubjectRelations(t.Context(), tenant, deletion("", 0).SubjectFilter, nil, 10)
	if err != nil || len(left) != 1 || left[0].Relation != "owner" {
		t.Errorf("left %v, %v", left, err)
	}
}
