package graph

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"

	"stonetown/tuplestore"
)

// world draws tuples that fill small and large sets, several pages of objects and of their
// index, and edges beyond the first few.
type world struct {
	r     *rand.Rand
	graph *Graph
	model map[tuplestore.Tuple]tuplestore.Qualifier
}

func (w *world) tuple() tuplestore.Tuple {
	if w.r.IntN(4) == 0 {
		return tuplestore.Presence(tuplestore.Object{Type: "page", ID: fmt.Sprint(w.r.IntN(6000))})
	}
	o := tuplestore.Object{Type: "doc", ID: fmt.Sprint(w.r.IntN(300))}
	if w.r.IntN(3) == 0 {
		o.ID = fmt.Sprint(w.r.IntN(3)) // has large sets
	}
	if w.r.IntN(10) == 0 {
		return tuplestore.Presence(o)
	}
	s := tuplestore.Subject{Type: "user", ID: fmt.Sprint(w.r.IntN(600))}
	if w.r.IntN(3) == 0 {
		s = tuplestore.Subject{Type: "doc", ID: fmt.Sprint(w.r.IntN(200)), Relation: fmt.Sprint("r", w.r.IntN(2))}
	}
	return tuplestore.Tuple{Object: o, Relation: fmt.Sprint("r", w.r.IntN(6)), Subject: s}
}

// change adds or removes a tuple; more are added if growing.
func (w *world) change(growing bool) {
	t := w.tuple()
	if w.r.IntN(100) < 40 != growing {
		f := tuplestore.Fact{Tuple: t}
		if !t.IsPresence() && w.r.IntN(4) == 0 {
			f.Qualifier = tuplestore.Qualifier{Condition: "c", Context: fmt.Sprint(w.r.IntN(20))}
		}
		w.graph.Add(f)
		w.model[t] = f.Qualifier
		return
	}
	w.graph.Remove(t)
	delete(w.model, t)
}

func relations(model map[tuplestore.Tuple]tuplestore.Qualifier) (n int) {
	for t := range model {
		if !t.IsPresence() {
			n++
		}
	}
	return n
}

// namedObjects returns the objects that tuples name.
func namedObjects(model map[tuplestore.Tuple]tuplestore.Qualifier) map[tuplestore.Object]bool {
	named := map[tuplestore.Object]bool{}
	for t := range model {
		named[t.Object] = true
		if !t.IsPresence() {
			named[t.Subject.Object()] = true
		}
	}
	return named
}

// A pinned graph stays as it was, backward index included, while the graph changes and pins
// come and go, and the graph has what it has without pins. Readers of pins run concurrently
// with the changes, for the race detector.
func TestPinnedGraphStaysAsItWas(t *testing.T) {
	for name, newGraph := range memories {
		t.Run(name, func(t *testing.T) { testPinned(t, newGraph) })
	}
}

// memories are where the graphs of tests can be.
var memories = map[string]func(t *testing.T) *Graph{"heap": func(*testing.T) *Graph { return New() }}

func testPinned(t *testing.T, newGraph func(t *testing.T) *Graph) {
	for seed := range uint64(3) {
		w := &world{rand.New(rand.NewPCG(seed, 1)), newGraph(t), map[tuplestore.Tuple]tuplestore.Qualifier{}}
		var readers sync.WaitGroup
		places := make(chan struct{}, 3)
		pins, partly := 0, false
		for step := range 30_000 {
			w.change(step/5000%2 == 0)
			if seed > 0 && step > 4000 && step%50 == 0 && !w.graph.HasBackward() {
				partly = !w.graph.IndexMoreBackward() || partly
			}
			if w.r.IntN(500) > 0 {
				continue
			}
			places <- struct{}{}
			pins++
			pinned, model := w.graph.Pin(), maps.Clone(w.model)
			times := 1 + w.r.IntN(4)
			readers.Go(func() {
				defer func() { <-places }()
				defer pinned.Unpin()
				for range times {
					have, backward := contents(pinned)
					if !maps.Equal(have, model) {
						t.Errorf("seed %d, step %d: pinned graph has %d tuples, want %d", seed, step, len(have), len(model))
					}
					if want := relations(model); pinned.HasBackward() && backward != want {
						t.Errorf("seed %d, step %d: pinned backward index has %d tuples, want %d", seed, step, backward, want)
					}
					named := namedObjects(model)
					for n := range 6000 { // many of them are added after the pin
						o := tuplestore.Object{Type: "page", ID: fmt.Sprint(n)}
						if !named[o] {
							named[o] = false
						}
					}
					for o, want := range named {
						lookup := []Lookup{{Type: pinned.Types.Known(o.Type), ID: o.ID}}
						pinned.FindAll(lookup)
						n := pinned.Find(o)
						if found := n != NoObject; found != want || found && pinned.Object(n) != o || lookup[0].Found != n {
							t.Errorf("seed %d, step %d: %s is object %d, and %d among many; it is one: %v", seed, step, o, n, lookup[0].Found, want)
						}
					}
				}
			})
		}
		readers.Wait()
		have, backward := contents(w.graph)
		if !maps.Equal(have, w.model) || w.graph.HasBackward() && backward != relations(w.model) {
			t.Errorf("seed %d: the graph has %d tuples and %d backward, want %d", seed, len(have), backward, len(w.model))
		}
		if pins < 30 || seed > 0 && (!partly || !w.graph.HasBackward()) {
			t.Errorf("seed %d: %d pins, index built in parts: %v", seed, pins, partly)
		}
		for tuple := range w.model {
			w.graph.Remove(tuple)
		}
		if have, _ := contents(w.graph); len(have) != 0 || w.graph.Bytes() != 0 {
			t.Errorf("seed %d: an empty graph has %d tuples and %d bytes", seed, len(have), w.graph.Bytes())
		}
	}
}

// Names that are new after a pin, or change, do not change in the pinned graph.
func TestPinnedNamesStayAsTheyWere(t *testing.T) {
	g := New()
	g.Relations.Intern("viewer")
	pinned := g.Pin()
	defer pinned.Unpin()
	g.Add(tuplestore.Fact{Tuple: tuplestore.Tuple{
		Object: tuplestore.Object{Type: "doc", ID: "1"}, Relation: "editor", Subject: tuplestore.Subject{Type: "user", ID: "ann"},
	}})
	if _, ok := pinned.Relations.Number("editor"); ok || len(pinned.Relations.Names()) != 1 {
		t.Errorf("pinned relations are %v", pinned.Relations.Names())
	}
	if _, ok := g.Relations.Number("editor"); !ok {
		t.Error("the new relation is not known")
	}
	g.Rename(nil, map[string]string{"viewer": "reader"})
	if _, ok := g.Relations.Number("reader"); !ok || pinned.Relations.Name(0) != "viewer" || g.Relations.Name(0) != "reader" {
		t.Errorf("after a rename: %v, pinned %v", g.Relations.Names(), pinned.Relations.Names())
	}
}

// BenchmarkAddToPinned adds a tuple with a new object to a graph of 300,000 objects that is pinned
// anew after every tenth, as it is beside lists.
func BenchmarkAddToPinned(b *testing.B) {
	g := New()
	add := func(doc, user int) {
		g.Add(tuplestore.Fact{Tuple: tuplestore.Tuple{
			Object: tuplestore.Object{Type: "doc", ID: fmt.Sprint(doc)}, Relation: "viewer", Subject: tuplestore.Subject{Type: "user", ID: fmt.Sprint(user)},
		}})
	}
	const docs, users = 200_000, 100_000
	for doc := range docs {
		add(doc, doc%users)
	}
	g.IndexBackward()
	r := rand.New(rand.NewPCG(1, 2))
	pinned := g.Pin()
	b.ReportAllocs()
	n := docs
	for b.Loop() {
		if n++; n%10 == 0 {
			pinned.Unpin()
			pinned = g.Pin()
		}
		add(n, r.IntN(users))
	}
	pinned.Unpin()
}
