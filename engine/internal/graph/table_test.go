package graph

import (
	"math/rand/v2"
	"testing"
)

func TestTableEqualsMap(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var table Table
	for round := range 50 {
		table.Clear()
		model := map[uint64]int32{}
		for n := range int32(1 + r.IntN(2000)) {
			key := TableKey(ObjectID(r.IntN(500)), uint32(r.IntN(4)))
			want, known := model[key]
			if got, found := table.Find(key); found != known || found && got != want {
				t.Fatalf("round %d: key %d has %d, %v, want %d, %v", round, key, got, found, want, known)
			}
			have, found := table.Insert(key, n)
			if !known {
				want = n
				model[key] = n
			}
			if found != known || have != want {
				t.Fatalf("round %d: insertion of key %d returns %d, %v, want %d, %v", round, key, have, found, want, known)
			}
		}
	}
}
