package graph

import (
	"slices"

	"stonetown/engine/internal/arena"
)

// BackwardEdge is a tuple, seen from its subject's object.
type BackwardEdge struct {
	From     ObjectID
	Relation RelationID // of From
	// As is the relation of the subject's object that the tuple names, or NoRelation if
	// the tuple names the object itself.
	As RelationID
}

// backwardIndex leads from an object to the tuples that name it as a subject, for traversals
// from subjects to objects. Only lists of resources need it, and it takes memory, so a graph is
// created without it. It is built in parts, between which the graph can be read and changed.
type backwardIndex struct {
	lists pages[[]BackwardEdge] // one for each object, once it is being built
	done  ObjectID              // the tuples of the objects before this one are in the index
	built bool
}

// indexedAtOnce is the number of objects, or of tuples if these are more, that one part of building
// the index concerns: less than a millisecond. The tuples of one object are in one part.
const indexedAtOnce = 4096

// IndexBackward builds the index for traversals from subjects to objects, which is kept
// up to date from then on.
func (g *Graph) IndexBackward() {
	for !g.IndexMoreBackward() {
	}
}

// IndexMoreBackward builds a part of the index. It reports whether the index is complete.
func (g *Graph) IndexMoreBackward() bool {
	g.begin()
	x := &g.backward
	switch {
	case x.built:
		return true
	case x.lists.len() < g.objects.len(): // room first, for all objects that a tuple can name
		for range min(indexedAtOnce, g.objects.len()-x.lists.len()) {
			x.lists.add(nil, g.w)
		}
		return false
	}
	end := min(int(x.done)+indexedAtOnce, g.objects.len())
	for left := indexedAtOnce; int(x.done) < end && left > 0; x.done++ {
		o := g.At(x.done)
		for i := range o.Edges() {
			e := g.View(o.Edge(i))
			for to := range e.Subjects() {
				g.addBackward(x.done, e.Relation, to)
				left--
			}
		}
	}
	if int(x.done) == g.objects.len() {
		x.built, x.done = true, NoObject
	}
	return x.built
}

// HasBackward reports whether the index is complete.
func (g *Graph) HasBackward() bool { return g.backward.built }

// Backward returns the tuples that name an object as their subject.
func (g *Graph) Backward(id ObjectID) []BackwardEdge { return *g.backward.lists.at(int(id)) }

func (g *Graph) addBackward(from ObjectID, relation RelationID, to Subject) {
	// An item after the end of the list that a pinned graph has is not part of that list.
	list := g.backward.lists.change(int(to.Object), g.w)
	*list = arena.Append(g.w.memory, *list, BackwardEdge{from, relation, to.Relation})
	g.bytes += backwardBytes
}

func (g *Graph) removeBackward(from ObjectID, relation RelationID, to Subject) {
	list := g.backward.lists.change(int(to.Object), g.w)
	i := slices.Index(*list, BackwardEdge{from, relation, to.Relation})
	if i < 0 {
		return
	}
	last := len(*list) - 1
	if g.w.pinned {
		*list = replaced(*list, g.w)
	}
	(*list)[i] = (*list)[last]
	*list = (*list)[:last]
	g.bytes -= backwardBytes
}

// grow makes room for a new object, if there is room for those before.
func (x *backwardIndex) grow(objects int, w writing) {
	if x.lists.len() == objects-1 && (x.built || x.lists.len() > 0) {
		x.lists.add(nil, w)
	}
}

// forget makes the list of an object empty.
func (x *backwardIndex) forget(id ObjectID, w writing) {
	if int(id) < x.lists.len() {
		list := x.lists.change(int(id), w)
		arena.FreeSlice(w.memory, *list)
		*list = nil
	}
}
