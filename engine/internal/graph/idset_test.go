package graph

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A set has the members that a map has, small and large, growing and shrinking.
func TestIDSetEqualsMap(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var s idSet
	model := map[ObjectID]bool{}
	largest := 0
	for step := range 300_000 {
		id := ObjectID(r.IntN(4000))
		if s.has(id) != model[id] {
			t.Fatalf("step %d: has %d is %v", step, id, s.has(id))
		}
		if r.IntN(100) < 30+40*(step/50_000%2) { // grows and shrinks alternately
			if s.add(id, writing{}) == model[id] {
				t.Fatalf("step %d: add %d", step, id)
			}
			model[id] = true
		} else {
			if s.remove(id, writing{}) != model[id] {
				t.Fatalf("step %d: remove %d", step, id)
			}
			delete(model, id)
		}
		largest = max(largest, len(model))
		if s.len() != len(model) {
			t.Fatalf("step %d: %d ids, want %d", step, s.len(), len(model))
		}
		if step%1000 == 0 {
			var all []ObjectID
			for ids := range s.lists {
				all = append(all, ids...)
			}
			all = slices.DeleteFunc(all, func(id ObjectID) bool { return id == NoObject })
			slices.Sort(all)
			if len(slices.Compact(all)) != len(model) {
				t.Fatalf("step %d: all are %d, want %d", step, len(all), len(model))
			}
		}
	}
	if s.has(NoObject) || largest < 2000 {
		t.Errorf("NoObject %v, largest %d", s.has(NoObject), largest)
	}
}
