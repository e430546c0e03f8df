package engine

import "testing"

// Heavy lists use memory again until it is dropped, and it keeps no ID alive.
func TestHeavyListings(t *testing.T) {
	e := &Engine{heavyLists: make(chan *listing, 1)}
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
	e.release(l, true)
	e.dropListings()
	if e.takeListing(true) == l {
		t.Error("the memory was not dropped")
	}
}
