package engine

import "testing"

// Heavy lists use memory again until it is dropped, and it keeps no ID alive.
func TestHeavyListings(t *testing.T) {
	e := &Engine{heavyLists: make(chan *listing, 1), heavyIDs: make(chan []string, 1)}
	l, other := e.takeListing(true), e.takeListing(true)
	if l == other {
		t.Fatal("two lists have the same memory")
	}
	l.candidates = append(l.candidates, candidate{id: "x"})
	e.release(l, true)
	e.release(other, true) // one too many
	if e.takeListing(true) != l {
		t.Error("the memory is not used again")
	}
	if len(l.candidates) != 0 || l.candidates[:1][0].id != "" {
		t.Errorf("the memory has %v", l.candidates[:1])
	}
	ids := append(e.takeIDs(true), "x", "y")
	e.releaseIDs(ids[:1])
	if again := e.takeIDs(true); cap(again) != cap(ids) || ids[0]+ids[1] != "" {
		t.Errorf("memory for %d IDs is used again, want %d; the IDs are %q", cap(again), cap(ids), ids)
	}
	e.release(l, true)
	e.releaseIDs(ids)
	e.dropListings()
	if e.takeListing(true) == l || cap(e.takeIDs(true)) > 0 {
		t.Error("the memory was not dropped")
	}
}
