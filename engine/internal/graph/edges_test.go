package graph

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"stonetown/tuplestore"
)

// contents returns the tuples of a graph by its edges, and counts those that the backward
// index has.
func contents(g *Graph) (facts map[tuplestore.Tuple]tuplestore.Qualifier, backward int) {
	facts = map[tuplestore.Tuple]tuplestore.Qualifier{}
	for from := range g.objects.len() {
		o := g.At(ObjectID(from))
		if o.registered {
			facts[tuplestore.Presence(g.Object(ObjectID(from)))] = tuplestore.Qualifier{}
		}
		for i := range o.Edges() {
			relation, _ := o.Edge(i).Relation()
			edges := g.View(o.Edge(i))
			for to, q := range edges.Subjects() {
				subject := g.Object(to.Object)
				tuple := tuplestore.Tuple{
					Object: g.Object(ObjectID(from)), Relation: g.Relations.Name(relation),
					Subject: tuplestore.Subject{Type: subject.Type, ID: subject.ID},
				}
				if to.IsUserset() {
					tuple.Subject.Relation = g.Relations.Name(to.Relation)
				}
				facts[tuple] = tuplestore.Qualifier{}
				if q != nil {
					facts[tuple] = *q
				}
			}
		}
		if !g.HasBackward() {
			continue
		}
		for _, b := range g.Backward(ObjectID(from)) {
			edges := g.Edges(b.From, b.Relation)
			for to := range edges.Subjects() {
				if to == (Subject{ObjectID(from), b.As}) {
					backward++
				}
			}
		}
	}
	return facts, backward
}

// A graph has the tuples that a map has, forward and backward, while tuples are added,
// updated and removed. When it is empty, its estimated size is 0.
func TestGraphEqualsMap(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	g := New()
	model := map[tuplestore.Tuple]tuplestore.Qualifier{}
	draw := func() tuplestore.Tuple {
		o := tuplestore.Object{Type: "doc", ID: fmt.Sprint(r.IntN(12))}
		if r.IntN(10) == 0 {
			return tuplestore.Presence(o)
		}
		s := tuplestore.Subject{Type: "user", ID: fmt.Sprint(r.IntN(30))}
		if r.IntN(3) == 0 {
			s = tuplestore.Subject{Type: "doc", ID: fmt.Sprint(r.IntN(12)), Relation: fmt.Sprint("r", r.IntN(2))}
		}
		return tuplestore.Tuple{Object: o, Relation: fmt.Sprint("r", r.IntN(6)), Subject: s}
	}
	for step := range 30_000 {
		if step == 1000 {
			g.IndexBackward()
		}
		tuple := draw()
		if r.IntN(100) < 35+30*(step/5000%2) {
			f := tuplestore.Fact{Tuple: tuple}
			if !tuple.IsPresence() && r.IntN(4) == 0 {
				f.Qualifier = tuplestore.Qualifier{Condition: "c", Context: fmt.Sprint(r.IntN(20))}
			}
			g.Add(f)
			model[tuple] = f.Qualifier
		} else {
			g.Apply(tuplestore.Change{Tuple: tuple, Deleted: true})
			delete(model, tuple)
		}
		for range 3 {
			tuple := draw()
			got, exists := g.Qualifier(tuple)
			if want, ok := model[tuple]; exists != ok || got != want {
				t.Fatalf("step %d: %v exists: %v, %+v, want %v, %+v", step, tuple, exists, got, ok, want)
			}
		}
		if step%500 != 499 {
			continue
		}
		have, backward := contents(g)
		if !maps.Equal(have, model) {
			t.Fatalf("step %d: the graph has %d tuples, want %d: %v, want %v", step, len(have), len(model), have, model)
		}
		relations := 0
		for tuple := range model {
			if !tuple.IsPresence() {
				relations++
			}
		}
		if step > 1000 && backward != relations {
			t.Fatalf("step %d: the backward index has %d tuples, want %d", step, backward, relations)
		}
	}
	for tuple := range model {
		g.Remove(tuple)
	}
	if have, _ := contents(g); len(have) != 0 || g.Bytes() != 0 || g.index.objects != 0 {
		t.Errorf("an empty graph has %d tuples, %d bytes and %d objects", len(have), g.Bytes(), g.index.objects)
	}
}

func TestOverlayAddsTuplesWithoutChangingTheGraph(t *testing.T) {
	tuple := func(object, relation, subject string) tuplestore.Fact {
		return tuplestore.Fact{Tuple: tuplestore.Tuple{
			Object: tuplestore.Object{Type: "doc", ID: object}, Relation: relation, Subject: tuplestore.Subject{Type: "user", ID: subject},
		}}
	}
	for _, own := range []bool{false, true} {
		g := New()
		g.Add(tuple("stored", "viewer", "ann"))
		g.IndexBackward()
		before, _ := contents(g)
		o := NewOverlay(g, own, []tuplestore.Fact{tuple("stored", "viewer", "bob"), tuple("new", "viewer", "ann")})
		if after, _ := contents(g); !maps.Equal(before, after) {
			t.Errorf("own %v: the graph has %v, want %v", own, after, before)
		}
		viewer := g.Relations.Known("viewer")
		stored, added := o.Find(tuplestore.Object{Type: "doc", ID: "stored"}), o.Find(tuplestore.Object{Type: "doc", ID: "new"})
		ann, bob := o.Find(tuplestore.Object{Type: "user", ID: "ann"}), o.Find(tuplestore.Object{Type: "user", ID: "bob"})
		for _, at := range []struct {
			object       ObjectID
			below, above ObjectID
		}{{stored, ann, bob}, {added, NoObject, ann}} {
			below, above := o.Edges(at.object, viewer)
			if at.below != NoObject && !below.Has(at.below) || at.below == NoObject && len(below.Usersets()) > 0 || !above.Has(at.above) {
				t.Errorf("own %v: %v has the subjects %v and %v", own, o.Key(at.object), below, above)
			}
			if !o.IsRegistered(at.object) {
				t.Errorf("own %v: %v is not registered", own, o.Key(at.object))
			}
		}
		if below, above := o.Backward(ann); len(below) != 1 || len(above) != 1 || above[0].From != added {
			t.Errorf("own %v: backward from ann: %v and %v", own, below, above)
		}
		if o.Find(tuplestore.Object{Type: "doc", ID: "other"}) != NoObject || o.Key(added) != (Key{g.Types.Known("doc"), "new"}) {
			t.Errorf("own %v: wrong numbers", own)
		}
	}
}
