package engine

import "slices"

// backEdge is a tuple seen from its subject's object.
type backEdge struct {
	from     objectID
	relation relationID // of from
	// as is the relation of the subject's object that the tuple names, or
	// noRelation if it names the object itself.
	as relationID
}

// indexBackward makes the graph walkable from subjects to objects, from now on.
// Only lists of resources need that, and it costs memory, so a graph starts
// without.
func (g *graph) indexBackward() {
	if g.back != nil {
		return
	}
	g.back = make([][]backEdge, len(g.objects), len(g.objects)+1)
	for from := range g.objects {
		o := &g.objects[from]
		for i := range int(o.n) {
			e := g.view(o.at(i))
			for to := range e.subjects() {
				g.addBack(objectID(from), e.relation, to)
			}
		}
	}
}

func (g *graph) addBack(from objectID, relation relationID, to subject) {
	g.back[to.object] = append(g.back[to.object], backEdge{from, relation, to.relation})
	g.bytes += backBytes
}

func (g *graph) removeBack(from objectID, relation relationID, to subject) {
	list := g.back[to.object]
	if i := slices.Index(list, backEdge{from, relation, to.relation}); i >= 0 {
		list[i] = list[len(list)-1]
		g.back[to.object] = list[:len(list)-1]
		g.bytes -= backBytes
	}
}
