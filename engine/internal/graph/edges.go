package graph

import (
	"iter"

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
	plain    idSet // objects, the wildcard object type:* among them
	usersets nodeSet
	// qualified are the subjects of tuples with a qualifier. They are in no other set, so
	// that traversals need not look up a qualifier for the subjects there.
	qualified map[Subject]*tuplestore.Qualifier
}

// Has reports whether an unqualified tuple names a plain subject.
func (e *Edges) Has(id ObjectID) bool {
	if e.more == nil {
		return e.one == id
	}
	return e.more.plain.has(id)
}

// Plain returns the plain subjects of the unqualified tuples of an edge that has other
// subjects than one. Some entries may be [NoObject].
func (e *Edges) Plain() []ObjectID { return e.more.plain.all() }

// Usersets returns the usersets that unqualified tuples name.
func (e *Edges) Usersets() []Node {
	if e.more == nil {
		return nil
	}
	return e.more.usersets.list
}

// Qualified returns the subjects of the qualified tuples.
func (e *Edges) Qualified() map[Subject]*tuplestore.Qualifier {
	if e.more == nil {
		return nil
	}
	return e.more.qualified
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
	return m.plain.len() == 0 && len(m.usersets.list) == 0 && len(m.qualified) == 0
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
	return Edges{e.relation &^ manyFlag, NoObject, &g.many[e.to]}
}

// Edges returns the subjects of a relation of an object.
func (g *Graph) Edges(id ObjectID, relation RelationID) Edges {
	o := &g.objects[id]
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
func (o *Object) addEdge(relation RelationID) *Edge {
	i := int(o.n)
	o.n++
	if i >= fewEdges {
		if o.rest == nil {
			o.rest = new([]Edge)
		}
		*o.rest = append(*o.rest, Edge{})
	}
	e := o.Edge(i)
	*e = Edge{relation, uint32(NoObject)}
	return e
}

// removeEdge removes an edge and moves the last edge into its place.
func (o *Object) removeEdge(i int) {
	last := int(o.n) - 1
	*o.Edge(i) = *o.Edge(last)
	if o.n--; last > fewEdges {
		*o.rest = (*o.rest)[:last-fewEdges]
	} else {
		o.rest = nil
	}
}

// subject numbers the subject of a tuple.
func (g *Graph) subject(s tuplestore.Subject) Subject {
	numbered := Subject{g.Intern(s.Object()), NoRelation}
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
	from := g.Intern(f.Object)
	if f.IsPresence() {
		if o := &g.objects[from]; !o.registered {
			o.registered = true
			o.uses++
		}
		return
	}
	to := g.subject(f.Subject)
	relation := g.Relations.Intern(f.Relation)
	o := &g.objects[from]
	var e *Edge
	if i := o.find(relation); i >= 0 {
		e = o.Edge(i)
	} else {
		e = o.addEdge(relation)
	}
	if !g.put(e, to, f.Qualifier) {
		return
	}
	g.objects[from].uses++
	g.objects[to.Object].uses++
	g.bytes += tupleBytes
	if g.backward != nil {
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
	grown, isNew := g.makeMany(e).put(to, q)
	g.bytes += grown
	return isNew
}

// makeMany makes room for other subjects than one plain subject.
func (g *Graph) makeMany(e *Edge) *manyEdges {
	if e.relation&manyFlag != 0 {
		return &g.many[e.to]
	}
	var place uint32
	if n := len(g.freeMany); n > 0 {
		place = g.freeMany[n-1]
		g.freeMany = g.freeMany[:n-1]
	} else {
		place = uint32(len(g.many))
		g.many = append(g.many, manyEdges{})
	}
	m := &g.many[place]
	if e.to != uint32(NoObject) {
		m.plain.add(ObjectID(e.to))
	}
	e.relation |= manyFlag
	e.to = place
	g.bytes += manyBytes
	return m
}

// put adds a subject, or replaces its qualifier. It reports by how many bytes qualifiers
// have grown, and whether the subject is new.
func (m *manyEdges) put(to Subject, q tuplestore.Qualifier) (grown int64, isNew bool) {
	shrunk, had := m.dropQualified(to)
	if q == (tuplestore.Qualifier{}) {
		if to.IsUserset() {
			return -shrunk, m.usersets.add(Node(to)) && !had
		}
		return -shrunk, m.plain.add(to.Object) && !had
	}
	had = m.dropUnqualified(to) || had
	if m.qualified == nil {
		m.qualified = map[Subject]*tuplestore.Qualifier{}
	}
	m.qualified[to] = &q
	return qualifierBytes + int64(len(q.Context)) - shrunk, !had
}

func (m *manyEdges) dropQualified(to Subject) (shrunk int64, had bool) {
	q, had := m.qualified[to]
	if !had {
		return 0, false
	}
	delete(m.qualified, to)
	if len(m.qualified) == 0 {
		m.qualified = nil
	}
	return qualifierBytes + int64(len(q.Context)), true
}

func (m *manyEdges) dropUnqualified(to Subject) bool {
	if to.IsUserset() {
		return m.usersets.remove(Node(to))
	}
	return m.plain.remove(to.Object)
}

// Remove removes a tuple, qualified or not.
func (g *Graph) Remove(t tuplestore.Tuple) {
	from := g.Find(t.Object)
	if from == NoObject {
		return
	}
	o := &g.objects[from]
	if t.IsPresence() {
		if o.registered {
			o.registered = false
			g.release(from)
		}
		return
	}
	relation := g.Relations.Intern(t.Relation)
	i := o.find(relation)
	to := Subject{g.Find(t.Subject.Object()), NoRelation}
	if to.Object == NoObject || i < 0 {
		return
	}
	if t.Subject.IsUserset() {
		to.Relation = g.Relations.Intern(t.Subject.Relation)
	}
	if !g.drop(o, i, to) {
		return
	}
	g.bytes -= tupleBytes
	if g.backward != nil {
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
		o.removeEdge(i)
		return true
	}
	m := &g.many[e.to]
	if !m.dropUnqualified(to) {
		shrunk, had := m.dropQualified(to)
		if !had {
			return false
		}
		g.bytes -= shrunk
	}
	if m.isEmpty() {
		*m = manyEdges{}
		g.freeMany = append(g.freeMany, e.to)
		g.bytes -= manyBytes
		o.removeEdge(i)
	}
	return true
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
		for _, id := range e.more.plain.all() {
			if id != NoObject && !yield(Plain(id), nil) {
				return
			}
		}
		for _, us := range e.more.usersets.list {
			if !yield(Subject(us), nil) {
				return
			}
		}
		for to, q := range e.more.qualified {
			if !yield(to, q) {
				return
			}
		}
	}
}
