package engine

import "stonetown/tuplestore"

// MaxContextual is how many contextual tuples a request may bring.
const MaxContextual = 100

// overlay is tuples that only one request knows, over a graph that others may
// be reading. Where both have a tuple, it holds if it does on the terms of one
// of them.
type overlay struct {
	graph *graph
	// own says that the graph belongs to the request. Objects are then numbered
	// there, and else here, from first on.
	own     bool
	first   objectID
	keys    []objectKey
	ids     map[objectKey]objectID
	present map[objectID]bool
	edges   map[node]*manyEdges
	back    map[objectID][]backEdge
}

// node is one relation of one object, in numbers.
type node struct {
	object   objectID
	relation relationID
}

func newOverlay(g *graph, own bool, facts []tuplestore.Fact) *overlay {
	o := &overlay{
		graph: g, own: own, first: objectID(len(g.objects)), ids: map[objectKey]objectID{},
		present: map[objectID]bool{}, edges: map[node]*manyEdges{}, back: map[objectID][]backEdge{},
	}
	for _, f := range facts {
		o.add(f)
	}
	return o
}

func (o *overlay) add(f tuplestore.Fact) {
	from := o.intern(f.Object)
	o.present[from] = true
	// The schema allows the tuple, so its names have numbers.
	at := node{from, relationID(o.graph.relations.numbers[f.Relation])}
	to := subject{o.intern(f.Subject.Object()), noRelation}
	if f.Subject.IsUserset() {
		to.relation = relationID(o.graph.relations.numbers[f.Subject.Relation])
	}
	e := o.edges[at]
	if e == nil {
		e = new(manyEdges)
		o.edges[at] = e
	}
	if _, isNew := e.put(to, f.Terms); isNew {
		o.back[to.object] = append(o.back[to.object], backEdge{from, at.relation, to.relation})
	}
}

func (o *overlay) intern(object tuplestore.Object) objectID {
	if o.own {
		return o.graph.intern(object)
	}
	if id := o.find(object); id != noObject {
		return id
	}
	key := objectKey{typeID(o.graph.types.numbers[object.Type]), object.ID}
	id := o.first + objectID(len(o.keys))
	o.keys = append(o.keys, key)
	o.ids[key] = id
	return id
}

// find returns the number of an object of the graph or of the overlay, or
// noObject.
func (o *overlay) find(object tuplestore.Object) objectID {
	if id := o.graph.find(object); id != noObject {
		return id
	}
	typ, ok := o.graph.types.numbers[object.Type]
	if !ok {
		return noObject
	}
	if id, ok := o.ids[objectKey{typeID(typ), object.ID}]; ok {
		return id
	}
	return noObject
}
