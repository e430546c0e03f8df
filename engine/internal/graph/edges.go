package graph

import (
	"iter"

	"stonetown/engine/internal/arena"
	"stonetown/tuplestore"
)

// Edge is the subjects of one relation of one object, as the graph stores them. Most
// edges have one plain subject, such as a document's folder or its owner.
type Edge struct {
	relation RelationID // with manyFlag
	// to is the only subject or, with manyFlag, a place in Graph.many.
	to uint32
}

// manyFlag marks an edge that has other subjects than one plain subject.
const manyFlag RelationID = 1 << 31

// Relation returns the edge's relation, and whether the edge has other subjects than one
// plain subject.
func (e *Edge) Relation() (relation RelationID, many bool) {
	return e.relation &^ manyFlag, e.relation&manyFlag != 0
}

// To returns the only subject of an edge that has no other.
func (e *Edge) To() ObjectID { return ObjectID(e.to) }

// Edges are the subjects of one relation of one object: a view of the graph that is valid
// until the graph changes.
type Edges struct {
	Relation RelationID
	one      ObjectID // the only subject, if more is nil; or NoObject
	more     *manyEdges
}

// None is the edges of a relation without tuples.
var None = Edges{one: NoObject}

// manyEdges are the subjects of an edge that has other subjects than one plain subject.
type manyEdges struct {
	made     uint64 // the generation in which the sets were made or copied
	plain    idSet  // objects, the wildcard object type:* among them
	usersets nodeSet
	// qualified are the subjects of tuples with a qualifier. They are in no other set, so
	// that traversals need not look up a qualifier for the subjects there.
	qualified *nodeTable[*tuplestore.Qualifier]
}

// Has reports whether an unqualified tuple names a plain subject.
func (e *Edges) Has(id ObjectID) bool {
	if e.more == nil {
		return e.one == id
	}
	return e.more.plain.has(id)
}

// Plain yields the plain subjects of the unqualified tuples of an edge that has other
// subjects than one. It yields many at once, which is faster, and some items may be [NoObject].
func (e *Edges) Plain(yield func([]ObjectID) bool) { e.more.plain.lists(yield) }

// Usersets returns the usersets that unqualified tuples name.
func (e *Edges) Usersets() []Node {
	if e.more == nil {
		return nil
	}
	return e.more.usersets.list
}

// HasQualified reports whether there are qualified tuples.
func (e *Edges) HasQualified() bool { return e.more != nil && e.more.qualified != nil }

// Qualifier returns the qualifier of the tuple with a subject, nil if there is no such tuple, or
// none that is qualified.
func (e *Edges) Qualifier(s Subject) *tuplestore.Qualifier {
	if e.more == nil {
		return nil
	}
	q, _ := e.more.qualified.find(Node(s))
	return q
}

// Qualified yields the subjects of the qualified tuples.
func (e *Edges) Qualified() iter.Seq2[Subject, *tuplestore.Qualifier] {
	return func(yield func(Subject, *tuplestore.Qualifier) bool) {
		if e.more == nil {
			return
		}
		for to, q := range e.more.qualified.all() {
			if !yield(Subject(to), q) {
				return
			}
		}
	}
}

// Subject is the subject of a tuple.
type Subject struct {
	Object   ObjectID
	Relation RelationID // NoRelation for a plain subject
}

// Plain returns an object as a plain subject.
func Plain(id ObjectID) Subject { return Subject{id, NoRelation} }

// IsUserset reports whether the subject is a userset.
func (s Subject) IsUserset() bool { return s.Relation != NoRelation }

func (m *manyEdges) isEmpty() bool {
	return m.plain.len() == 0 && len(m.usersets.list) == 0 && m.qualified == nil
}

// Edges returns the number of the object's edges.
func (o *Object) Edges() int { return int(o.n) }

// Edge returns the ith edge of the object.
func (o *Object) Edge(i int) *Edge {
	if i < fewEdges {
		return &o.few[i]
	}
	return &(*o.rest)[i-fewEdges]
}

// View returns the subjects of an edge.
func (g *Graph) View(e *Edge) Edges {
	if e.relation&manyFlag == 0 {
		return Edges{e.relation, ObjectID(e.to), nil}
	}
	return Edges{e.relation &^ manyFlag, NoObject, g.many.at(int(e.to))}
}

// Edges returns the subjects of a relation of an object.
func (g *Graph) Edges(id ObjectID, relation RelationID) Edges {
	o := g.At(id)
	if i := o.find(relation); i >= 0 {
		return g.View(o.Edge(i))
	}
	return None
}

// find returns the index of a relation's edge, or -1.
func (o *Object) find(relation RelationID) int {
	for i := range int(o.n) {
		if o.Edge(i).relation&^manyFlag == relation {
			return i
		}
	}
	return -1
}

// addEdge adds an edge without subjects to an object.
func (o *Object) addEdge(relation RelationID, w writing) *Edge {
	i := int(o.n)
	o.n++
	if i >= fewEdges {
		if o.rest == nil {
			o.rest = arena.Alloc[[]Edge](w.memory)
		}
		*o.rest = arena.Append(w.memory, *o.rest, Edge{})
	}
	e := o.Edge(i)
	*e = Edge{relation, uint32(NoObject)}
	return e
}

// removeEdge removes an edge and moves the last edge into its place.
func (o *Object) removeEdge(i int, w writing) {
	last := int(o.n) - 1
	*o.Edge(i) = *o.Edge(last)
	switch o.n--; {
	case last > fewEdges:
		*o.rest = (*o.rest)[:last-fewEdges]
	case o.rest != nil:
		arena.FreeSlice(w.memory, *o.rest)
		arena.Free(w.memory, o.rest)
		o.rest = nil
	}
}

// subject numbers the subject of a tuple.
func (g *Graph) subject(s tuplestore.Subject) Subject {
	numbered := Subject{g.intern(s.Object()), NoRelation}
	if s.IsUserset() {
		numbered.Relation = g.Relations.Intern(s.Relation)
	}
	return numbered
}

// Apply makes a change of the changelog.
func (g *Graph) Apply(c tuplestore.Change) {
	if c.Deleted {
		g.Remove(c.Tuple)
	} else {
		g.Add(tuplestore.Fact{Tuple: c.Tuple, Qualifier: c.Qualifier})
	}
}

// Add adds a tuple, or replaces the qualifier of a tuple that exists.
func (g *Graph) Add(f tuplestore.Fact) {
	g.begin()
	from := g.intern(f.Object)
	if f.IsPresence() {
		if !g.At(from).registered {
			o := g.change(from)
			o.registered = true
			o.uses++
		}
		return
	}
	to := g.subject(f.Subject)
	relation := g.Relations.Intern(f.Relation)
	o := g.change(from)
	var e *Edge
	if i := o.find(relation); i >= 0 {
		e = o.Edge(i)
	} else {
		e = o.addEdge(relation, g.w)
	}
	if !g.put(e, to, f.Qualifier) {
		return
	}
	o.uses++
	g.change(to.Object).uses++
	g.bytes += tupleBytes
	if from < g.backward.done {
		g.addBackward(from, relation, to)
	}
}

// put adds a subject to an edge, or replaces its qualifier. It reports whether the
// subject is new.
func (g *Graph) put(e *Edge, to Subject, q tuplestore.Qualifier) bool {
	if e.relation&manyFlag == 0 && q == (tuplestore.Qualifier{}) && !to.IsUserset() &&
		(e.to == uint32(NoObject) || e.to == uint32(to.Object)) {
		isNew := e.to == uint32(NoObject)
		e.to = uint32(to.Object)
		return isNew
	}
	grown, isNew := g.makeMany(e).put(to, q, g.w)
	g.bytes += grown
	return isNew
}

// makeMany makes room for other subjects than one plain subject.
func (g *Graph) makeMany(e *Edge) *manyEdges {
	if e.relation&manyFlag != 0 {
		return g.changeMany(e.to)
	}
	var place uint32
	if n := len(g.freeMany); n > 0 {
		place = g.freeMany[n-1]
		g.freeMany = g.freeMany[:n-1]
	} else {
		place = uint32(g.many.add(manyEdges{}, g.w))
	}
	m := g.changeMany(place)
	if e.to != uint32(NoObject) {
		m.plain.add(ObjectID(e.to), g.w)
	}
	e.relation |= manyFlag
	e.to = place
	g.bytes += manyBytes
	return m
}

// free returns the memory of the sets, and makes them empty.
func (m *manyEdges) free(w writing) {
	m.plain.free(w)
	m.usersets.free(w)
	m.qualified.free(w)
	*m = manyEdges{}
}

// changeMany returns the subjects of an edge, to be changed.
func (g *Graph) changeMany(place uint32) *manyEdges {
	m := g.many.change(int(place), g.w)
	if g.w.pinned && m.made != g.w.generation {
		m.plain.unpin(g.w)
		m.usersets.unpin(g.w)
		m.qualified = m.qualified.unpinned(g.w)
	}
	m.made = g.w.generation
	return m
}

// put adds a subject, or replaces its qualifier. It reports by how many bytes qualifiers
// have grown, and whether the subject is new.
func (m *manyEdges) put(to Subject, q tuplestore.Qualifier, w writing) (grown int64, isNew bool) {
	shrunk, had := m.dropQualified(to, w)
	if q == (tuplestore.Qualifier{}) {
		if to.IsUserset() {
			return -shrunk, m.usersets.add(Node(to), w) && !had
		}
		return -shrunk, m.plain.add(to.Object, w) && !had
	}
	had = m.dropUnqualified(to, w) || had
	if m.qualified == nil {
		m.qualified = newNodeTable[*tuplestore.Qualifier](w)
	}
	stored := arena.Alloc[tuplestore.Qualifier](w.memory)
	*stored = tuplestore.Qualifier{
		ExpiresAt: q.ExpiresAt, Condition: arena.Text(w.memory, q.Condition), Context: arena.Text(w.memory, q.Context),
	}
	m.qualified.put(Node(to), stored, w)
	return qualifierBytes + int64(len(q.Context)) - shrunk, !had
}

func (m *manyEdges) dropQualified(to Subject, w writing) (shrunk int64, had bool) {
	q, had := m.qualified.find(Node(to))
	if !had {
		return 0, false
	}
	shrunk = qualifierBytes + int64(len(q.Context))
	arena.FreeText(w.memory, q.Condition)
	arena.FreeText(w.memory, q.Context)
	arena.Free(w.memory, q)
	if m.qualified.remove(Node(to), w); m.qualified.len() == 0 {
		m.qualified.free(w)
		m.qualified = nil
	}
	return shrunk, true
}

func (m *manyEdges) dropUnqualified(to Subject, w writing) bool {
	if to.IsUserset() {
		return m.usersets.remove(Node(to), w)
	}
	return m.plain.remove(to.Object, w)
}

// Remove removes a tuple, qualified or not.
func (g *Graph) Remove(t tuplestore.Tuple) {
	g.begin()
	from := g.Find(t.Object)
	if from == NoObject {
		return
	}
	if t.IsPresence() {
		if g.At(from).registered {
			g.change(from).registered = false
			g.release(from)
		}
		return
	}
	relation := g.Relations.Intern(t.Relation)
	i := g.At(from).find(relation)
	to := Subject{g.Find(t.Subject.Object()), NoRelation}
	if to.Object == NoObject || i < 0 {
		return
	}
	if t.Subject.IsUserset() {
		to.Relation = g.Relations.Intern(t.Subject.Relation)
	}
	if !g.drop(g.change(from), i, to) {
		return
	}
	g.bytes -= tupleBytes
	if from < g.backward.done {
		g.removeBackward(from, relation, to)
	}
	g.release(from)
	g.release(to.Object)
}

// drop removes a subject from the ith edge of an object, and the edge if that was its
// last subject. It reports whether the edge had the subject.
func (g *Graph) drop(o *Object, i int, to Subject) bool {
	e := o.Edge(i)
	if e.relation&manyFlag == 0 {
		if to.IsUserset() || e.to != uint32(to.Object) {
			return false
		}
		o.removeEdge(i, g.w)
		return true
	}
	m := g.changeMany(e.to)
	if !m.dropUnqualified(to, g.w) {
		shrunk, had := m.dropQualified(to, g.w)
		if !had {
			return false
		}
		g.bytes -= shrunk
	}
	if m.isEmpty() {
		m.free(g.w)
		g.freeMany = append(g.freeMany, e.to)
		g.bytes -= manyBytes
		o.removeEdge(i, g.w)
	}
	return true
}

// Qualifier returns the qualifier of a tuple, if it exists.
func (g *Graph) Qualifier(t tuplestore.Tuple) (q tuplestore.Qualifier, exists bool) {
	from := g.Find(t.Object)
	if from == NoObject {
		return q, false
	}
	if t.IsPresence() {
		return q, g.At(from).registered
	}
	relation, ok := g.Relations.Number(t.Relation)
	to := Subject{g.Find(t.Subject.Object()), NoRelation}
	if !ok || to.Object == NoObject {
		return q, false
	}
	if t.Subject.IsUserset() {
		if to.Relation, ok = g.Relations.Number(t.Subject.Relation); !ok {
			return q, false
		}
	}
	e := g.Edges(from, relation)
	if stored := e.Qualifier(to); stored != nil {
		return tuplestore.Qualifier{
			ExpiresAt: stored.ExpiresAt,
			Condition: arena.Outside(g.w.memory, stored.Condition), Context: arena.Outside(g.w.memory, stored.Context),
		}, true
	}
	if to.IsUserset() {
		return q, e.more != nil && e.more.usersets.has(Node(to))
	}
	return q, e.Has(to.Object)
}

// Subjects yields every subject with the qualifier of its tuple, nil if there is none.
func (e *Edges) Subjects() iter.Seq2[Subject, *tuplestore.Qualifier] {
	return func(yield func(Subject, *tuplestore.Qualifier) bool) {
		if e.more == nil {
			if e.one != NoObject {
				yield(Plain(e.one), nil)
			}
			return
		}
		for ids := range e.Plain {
			for _, id := range ids {
				if id != NoObject && !yield(Plain(id), nil) {
					return
				}
			}
		}
		for _, us := range e.more.usersets.list {
			if !yield(Subject(us), nil) {
				return
			}
		}
		e.Qualified()(yield)
	}
}
