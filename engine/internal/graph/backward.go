package graph

import "slices"

// BackwardEdge is a tuple, seen from its subject's object.
type BackwardEdge struct {
	From     ObjectID
	Relation RelationID // of From
	// As is the relation of the subject's object that the tuple names, or NoRelation if
	// the tuple names the object itself.
	As RelationID
}

// IndexBackward builds the index for traversals from subjects to objects, which is kept
// up to date from then on. Only lists of resources need it, and it takes memory, so a graph
// is created without it.
func (g *Graph) IndexBackward() {
	if g.backward != nil {
		return
	}
	g.backward = make([][]BackwardEdge, len(g.objects), len(g.objects)+1)
	for from := range g.objects {
		o := &g.objects[from]
		for i := range int(o.n) {
			e := g.View(o.Edge(i))
			for to := range e.Subjects() {
				g.addBackward(ObjectID(from), e.Relation, to)
			}
		}
	}
}

// HasBackward reports whether [Graph.IndexBackward] has been called.
func (g *Graph) HasBackward() bool { return g.backward != nil }

// Backward returns the tuples that name an object as their subject.
func (g *Graph) Backward(id ObjectID) []BackwardEdge { return g.backward[id] }

func (g *Graph) addBackward(from ObjectID, relation RelationID, to Subject) {
	g.backward[to.Object] = append(g.backward[to.Object], BackwardEdge{from, relation, to.Relation})
	g.bytes += backwardBytes
}

func (g *Graph) removeBackward(from ObjectID, relation RelationID, to Subject) {
	list := g.backward[to.Object]
	if i := slices.Index(list, BackwardEdge{from, relation, to.Relation}); i >= 0 {
		list[i] = list[len(list)-1]
		g.backward[to.Object] = list[:len(list)-1]
		g.bytes -= backwardBytes
	}
}
