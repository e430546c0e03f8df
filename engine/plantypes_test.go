package engine

import (
	"fmt"
	"testing"

	"stonetown/tuplestore"
	"stonetown/tuplestore/memstore"
)

// TestIllegalIsBounded counts tuples beyond the limit: of further reasons only the samples.
func TestIllegalIsBounded(t *testing.T) {
	store := memstore.New(memstore.Config{})
	defer store.Close()
	var w tuplestore.Write
	for _, relation := range []string{"a", "b", "c"} {
		for i := range 30 {
			w.Ops = append(w.Ops, tuplestore.Op{Kind: tuplestore.Create, Tuple: tuplestore.Tuple{
				Object: tuplestore.Object{Type: "doc", ID: fmt.Sprint(i)}, Relation: relation, Subject: tuplestore.Subject{Type: "user", ID: "ann"},
			}})
		}
	}
	result, err := store.Write(t.Context(), "t", w)
	if err != nil {
		t.Fatal(err)
	}
	filters := []tuplestore.Filter{{ObjectType: "doc", Relation: "a"}, {ObjectType: "doc", Relation: "b"}, {ObjectType: "doc", Relation: "c"}}
	for most, want := range map[int][]int{90: {30, 30, 30}, 89: {30, 30, 29}, 45: {30, 15, 10}, 0: {10, 10, 10}} {
		found, err := illegal(t.Context(), store.Snapshot("t", result.Revision), filters, most)
		if err != nil {
			t.Fatal(err)
		}
		for i, n := range want {
			if found[i].Count != n || found[i].Exact != (n == 30) || len(found[i].Samples) != MaxSamples {
				t.Errorf("at most %d: reason %d has %d, exact %v, %d samples, want %d", most, i, found[i].Count, found[i].Exact, len(found[i].Samples), n)
			}
		}
	}
}
