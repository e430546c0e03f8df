package graph

import "stonetown/tuplestore"

// Overlay adds the contextual tuples of one request to a graph that other requests may be
// reading. If both have a tuple, it holds if one of them holds.
type Overlay struct {
	graph *Graph
	// own: the graph belongs to the request. New objects are then numbered in the graph,
	// and otherwise here, from first on.
	own        bool
	first      ObjectID
	keys       []Key
	ids        map[Key]ObjectID
	registered map[ObjectID]bool
	edges      map[Node]*manyEdges
	backward   map[ObjectID][]BackwardEdge
}

// NewOverlay returns an overlay of tuples whose types and relations the graph has
// numbered. own: the graph belongs to the request.
func NewOverlay(g *Graph, own bool, facts []tuplestore.Fact) *Overlay {
	o := &Overlay{
		graph: g, own: own, first: ObjectID(g.objects.len()), ids: map[Key]ObjectID{},
		registered: map[ObjectID]bool{}, edges: map[Node]*manyEdges{}, backward: map[ObjectID][]BackwardEdge{},
	}
	for _, f := range facts {
		o.add(f)
	}
	return o
}

func (o *Overlay) add(f tuplestore.Fact) {
	from := o.intern(f.Object)
	o.registered[from] = true
	at := Node{from, o.graph.Relations.Known(f.Relation)}
	to := Subject{o.intern(f.Subject.Object()), NoRelation}
	if f.Subject.IsUserset() {
		to.Relation = o.graph.Relations.Known(f.Subject.Relation)
	}
	e := o.edges[at]
	if e == nil {
		e = new(manyEdges)
		o.edges[at] = e
	}
	if _, isNew := e.put(to, f.Qualifier, writing{}); isNew {
		o.backward[to.Object] = append(o.backward[to.Object], BackwardEdge{from, at.Relation, to.Relation})
	}
}

func (o *Overlay) intern(object tuplestore.Object) ObjectID {
	if o.own {
		return o.graph.Intern(object)
	}
	if id := o.Find(object); id != NoObject {
		return id
	}
	key := Key{o.graph.Types.Known(object.Type), object.ID}
	id := o.first + ObjectID(len(o.keys))
	o.keys = append(o.keys, key)
	o.ids[key] = id
	return id
}

// isAdded reports whether an object is numbered by the overlay, and unknown to the graph.
func (o *Overlay) isAdded(id ObjectID) bool { return !o.own && id >= o.first }

// Find returns the number of an object of the graph or the overlay, or [NoObject].
func (o *Overlay) Find(object tuplestore.Object) ObjectID {
	if id := o.graph.Find(object); id != NoObject {
		return id
	}
	typ, ok := o.graph.Types.Number(object.Type)
	if !ok {
		return NoObject
	}
	if id, ok := o.ids[Key{typ, object.ID}]; ok {
		return id
	}
	return NoObject
}

// Key returns the type and ID of an object.
func (o *Overlay) Key(id ObjectID) Key {
	if o.isAdded(id) {
		return o.keys[id-o.first]
	}
	return o.graph.Key(id)
}

// IsRegistered reports whether an object is registered. The objects of contextual tuples
// count as registered.
func (o *Overlay) IsRegistered(id ObjectID) bool {
	return o.registered[id] || !o.isAdded(id) && o.graph.At(id).registered
}

// Edges returns the subjects of a relation of an object: those of the graph and those of
// the overlay.
func (o *Overlay) Edges(id ObjectID, relation RelationID) (below, above Edges) {
	below, above = None, None
	if !o.isAdded(id) {
		below = o.graph.Edges(id, relation)
	}
	if m := o.edges[Node{id, relation}]; m != nil {
		above = Edges{relation, NoObject, m}
	}
	return below, above
}

// Backward returns the tuples that name an object as their subject: those of the graph
// and those of the overlay.
func (o *Overlay) Backward(id ObjectID) (below, above []BackwardEdge) {
	if !o.isAdded(id) {
		below = o.graph.Backward(id)
	}
	return below, o.backward[id]
}
