package engine

import (
	"iter"

	"stonetown/tuplestore"
)

// edge is the subjects of one relation of one object, as the graph stores them.
// Most have one subject, which is plain: a document's folder, its owner.
type edge struct {
	relation relationID
	// to is the subject or, where the relation bears manyFlag, a place in
	// graph.many.
	to uint32
}

const manyFlag relationID = 1 << 31

// edges are the subjects of one relation of one object. They are a view of the
// graph, good until it changes.
type edges struct {
	relation relationID
	one      objectID // the only subject, if more is nil; or noObject
	more     *manyEdges
}

// none are the edges of a relation that an object does not have.
var none = edges{one: noObject}

// manyEdges are subjects that are not just one plain one.
type manyEdges struct {
	plain    idSet // objects, the wildcard object type:* among them
	usersets usersetList
	// termed are the subjects that the relation names on terms. They stand
	// nowhere else, so that the others need no second look.
	termed map[subject]*tuplestore.Terms
}

// has reports whether a plain subject is named, and not on terms.
func (e *edges) has(id objectID) bool {
	if e.more == nil {
		return e.one == id
	}
	return e.more.plain.has(id)
}

// usersets are those that are named, and not on terms.
func (e *edges) usersets() []userset {
	if e.more == nil {
		return nil
	}
	return e.more.usersets.list
}

// termed are the subjects that are named on terms.
func (e *edges) termed() map[subject]*tuplestore.Terms {
	if e.more == nil {
		return nil
	}
	return e.more.termed
}

// subject is the right-hand side of a tuple in numbers.
type subject struct {
	object   objectID
	relation relationID // noRelation for a plain subject
}

// noRelation is the number of no relation.
const noRelation = ^relationID(0)

func (s subject) isUserset() bool { return s.relation != noRelation }

func (m *manyEdges) isEmpty() bool {
	return m.plain.len() == 0 && len(m.usersets.list) == 0 && len(m.termed) == 0
}

// at is the ith edge of an object.
func (o *object) at(i int) *edge {
	if i < fewEdges {
		return &o.few[i]
	}
	return &(*o.rest)[i-fewEdges]
}

// view is what an edge stands for.
func (g *graph) view(e *edge) edges {
	if e.relation&manyFlag == 0 {
		return edges{e.relation, objectID(e.to), nil}
	}
	return edges{e.relation &^ manyFlag, noObject, &g.many[e.to]}
}

// edges are the subjects of a relation of an object.
func (g *graph) edges(id objectID, relation relationID) edges {
	o := &g.objects[id]
	if i := o.find(relation); i >= 0 {
		return g.view(o.at(i))
	}
	return none
}

// find is which edge of an object a relation has, or -1.
func (o *object) find(relation relationID) int {
	for i := range int(o.n) {
		if o.at(i).relation&^manyFlag == relation {
			return i
		}
	}
	return -1
}

// addEdge gives an object an edge, which names nobody yet.
func (o *object) addEdge(relation relationID) *edge {
	i := int(o.n)
	o.n++
	if i >= fewEdges {
		if o.rest == nil {
			o.rest = new([]edge)
		}
		*o.rest = append(*o.rest, edge{})
	}
	e := o.at(i)
	*e = edge{relation, uint32(noObject)}
	return e
}

// removeEdge takes away an edge; the last one takes its place.
func (o *object) removeEdge(i int) {
	last := int(o.n) - 1
	*o.at(i) = *o.at(last)
	if o.n--; last > fewEdges {
		*o.rest = (*o.rest)[:last-fewEdges]
	} else {
		o.rest = nil
	}
}

// subject numbers the subject of a tuple.
func (g *graph) subject(s tuplestore.Subject) subject {
	numbered := subject{g.intern(s.Object()), noRelation}
	if s.IsUserset() {
		numbered.relation = relationID(g.relations.intern(s.Relation))
	}
	return numbered
}

// add puts a tuple into the graph, in place of the same tuple on other terms.
func (g *graph) add(f tuplestore.Fact) {
	from := g.intern(f.Object)
	if f.IsPresence() {
		if o := &g.objects[from]; !o.present {
			o.present = true
			o.uses++
		}
		return
	}
	to := g.subject(f.Subject)
	relation := relationID(g.relations.intern(f.Relation))
	o := &g.objects[from]
	var e *edge
	if i := o.find(relation); i >= 0 {
		e = o.at(i)
	} else {
		e = o.addEdge(relation)
	}
	if !g.put(e, to, f.Terms) {
		return
	}
	g.objects[from].uses++
	g.objects[to.object].uses++
	g.bytes += tupleBytes
	if g.back != nil {
		g.addBack(from, relation, to)
	}
}

// put adds a subject to an edge and reports whether it was not there, on whatever
// terms.
func (g *graph) put(e *edge, to subject, terms tuplestore.Terms) bool {
	if e.relation&manyFlag == 0 && terms == (tuplestore.Terms{}) && !to.isUserset() &&
		(e.to == uint32(noObject) || e.to == uint32(to.object)) {
		isNew := e.to == uint32(noObject)
		e.to = uint32(to.object)
		return isNew
	}
	grown, isNew := g.makeMany(e).put(to, terms)
	g.bytes += grown
	return isNew
}

// makeMany makes room for more than one plain subject.
func (g *graph) makeMany(e *edge) *manyEdges {
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
	if e.to != uint32(noObject) {
		m.plain.add(objectID(e.to))
	}
	e.relation |= manyFlag
	e.to = place
	g.bytes += manyBytes
	return m
}

// put adds a subject and reports whether it was not there, on whatever terms, and
// how many bytes its terms take more.
func (m *manyEdges) put(to subject, terms tuplestore.Terms) (grown int64, isNew bool) {
	shrunk, had := m.dropTerms(to)
	if terms == (tuplestore.Terms{}) {
		if to.isUserset() {
			return -shrunk, m.usersets.add(userset(to)) && !had
		}
		return -shrunk, m.plain.add(to.object) && !had
	}
	had = m.dropPlain(to) || had
	if m.termed == nil {
		m.termed = map[subject]*tuplestore.Terms{}
	}
	m.termed[to] = &terms
	return termsBytes + int64(len(terms.Context)) - shrunk, !had
}

func (m *manyEdges) dropTerms(to subject) (shrunk int64, had bool) {
	terms, had := m.termed[to]
	if !had {
		return 0, false
	}
	delete(m.termed, to)
	if len(m.termed) == 0 {
		m.termed = nil
	}
	return termsBytes + int64(len(terms.Context)), true
}

func (m *manyEdges) dropPlain(to subject) bool {
	if to.isUserset() {
		return m.usersets.remove(userset(to))
	}
	return m.plain.remove(to.object)
}

// remove takes a tuple out of the graph, whatever its terms.
func (g *graph) remove(t tuplestore.Tuple) {
	from := g.find(t.Object)
	if from == noObject {
		return
	}
	o := &g.objects[from]
	if t.IsPresence() {
		if o.present {
			o.present = false
			g.release(from)
		}
		return
	}
	relation := relationID(g.relations.intern(t.Relation))
	i := o.find(relation)
	to := subject{g.find(t.Subject.Object()), noRelation}
	if to.object == noObject || i < 0 {
		return
	}
	if t.Subject.IsUserset() {
		to.relation = relationID(g.relations.intern(t.Subject.Relation))
	}
	if !g.drop(o, i, to) {
		return
	}
	g.bytes -= tupleBytes
	if g.back != nil {
		g.removeBack(from, relation, to)
	}
	g.release(from)
	g.release(to.object)
}

// drop takes a subject from the ith edge of an object, and the edge from the
// object if it was the last. It reports whether it was there.
func (g *graph) drop(o *object, i int, to subject) bool {
	e := o.at(i)
	if e.relation&manyFlag == 0 {
		if to.isUserset() || e.to != uint32(to.object) {
			return false
		}
		o.removeEdge(i)
		return true
	}
	m := &g.many[e.to]
	if !m.dropPlain(to) {
		shrunk, had := m.dropTerms(to)
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

// subjects yields every subject with its terms, nil for always.
func (e *edges) subjects() iter.Seq2[subject, *tuplestore.Terms] {
	return func(yield func(subject, *tuplestore.Terms) bool) {
		if e.more == nil {
			if e.one != noObject {
				yield(subject{e.one, noRelation}, nil)
			}
			return
		}
		for _, id := range e.more.plain.all() {
			if id != noObject && !yield(subject{id, noRelation}, nil) {
				return
			}
		}
		for _, us := range e.more.usersets.list {
			if !yield(subject(us), nil) {
				return
			}
		}
		for to, terms := range e.more.termed {
			if !yield(to, terms) {
				return
			}
		}
	}
}
