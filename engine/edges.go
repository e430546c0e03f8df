package engine

import (
	"iter"
	"slices"

	"stonetown/tuplestore"
)

// edges are the subjects of one relation of one object. Most have one, which is
// plain: a document's folder, its owner.
type edges struct {
	relation relationID
	one      objectID // the only subject, if more is nil; or noObject
	more     *manyEdges
}

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

func (e *edges) isEmpty() bool {
	if m := e.more; m != nil {
		return m.plain.len() == 0 && len(m.usersets.list) == 0 && len(m.termed) == 0
	}
	return e.one == noObject
}

// many makes room for more than one plain subject.
func (e *edges) many(g *graph) *manyEdges {
	if e.more == nil {
		e.more = new(manyEdges)
		g.bytes += manyBytes
		if e.one != noObject {
			e.more.plain.add(e.one)
			e.one = noObject
		}
	}
	return e.more
}

// find returns the edges of a relation of an object, or nil.
func (o *object) find(relation relationID) *edges {
	for i := range o.edges {
		if o.edges[i].relation == relation {
			return &o.edges[i]
		}
	}
	return nil
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
	e := o.find(relation)
	if e == nil {
		o.edges = append(o.edges, edges{relation: relation, one: noObject})
		e = &o.edges[len(o.edges)-1]
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

// put adds a subject to edges and reports whether it was not there, on whatever
// terms.
func (g *graph) put(e *edges, to subject, terms tuplestore.Terms) bool {
	if terms == (tuplestore.Terms{}) {
		if e.more == nil && !to.isUserset() && (e.one == noObject || e.one == to.object) {
			was := e.one != noObject
			e.one = to.object
			return !was
		}
		m := e.many(g)
		was := g.dropTerms(e, to)
		if to.isUserset() {
			return m.usersets.add(userset(to)) && !was
		}
		return m.plain.add(to.object) && !was
	}
	was := e.dropPlain(to) || g.dropTerms(e, to)
	m := e.many(g)
	if m.termed == nil {
		m.termed = map[subject]*tuplestore.Terms{}
	}
	m.termed[to] = &terms
	g.bytes += termsBytes + int64(len(terms.Context))
	return !was
}

func (g *graph) dropTerms(e *edges, to subject) bool {
	terms, ok := e.termed()[to]
	if !ok {
		return false
	}
	delete(e.more.termed, to)
	g.bytes -= termsBytes + int64(len(terms.Context))
	if len(e.more.termed) == 0 {
		e.more.termed = nil
	}
	return true
}

func (e *edges) dropPlain(to subject) bool {
	switch {
	case e.more != nil && to.isUserset():
		return e.more.usersets.remove(userset(to))
	case e.more != nil:
		return e.more.plain.remove(to.object)
	case to.isUserset() || e.one != to.object:
		return false
	}
	e.one = noObject
	return true
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
	e := o.find(relationID(g.relations.intern(t.Relation)))
	to := subject{g.find(t.Subject.Object()), noRelation}
	if to.object == noObject || e == nil {
		return
	}
	if t.Subject.IsUserset() {
		to.relation = relationID(g.relations.intern(t.Subject.Relation))
	}
	if !e.dropPlain(to) && !g.dropTerms(e, to) {
		return
	}
	relation := e.relation
	if e.isEmpty() {
		if e.more != nil {
			g.bytes -= manyBytes
		}
		o.edges = slices.DeleteFunc(o.edges, func(have edges) bool { return have.relation == relation })
	}
	g.bytes -= tupleBytes
	if g.back != nil {
		g.removeBack(from, relation, to)
	}
	g.release(from)
	g.release(to.object)
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
		more := true
		e.more.plain.each(func(id objectID) bool {
			more = yield(subject{id, noRelation}, nil)
			return more
		})
		for _, us := range e.more.usersets.list {
			if !more {
				return
			}
			more = yield(subject(us), nil)
		}
		for to, terms := range e.more.termed {
			if !more {
				return
			}
			more = yield(to, terms)
		}
	}
}
