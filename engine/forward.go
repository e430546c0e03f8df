package engine

import (
	"context"

	"stonetown/tuplestore"
)

// forward is the traversal from a resource to the subjects of one kind that its set can
// contain. It visits subtracted sides, too. It goes level by level: cold, each level is one
// read, after which the graph has all that the set depends on.
type forward struct {
	*readView
	e    *evaluation
	root objectID

	seen map[uint64]bool // goals visited; true: as surely part of the set
	next []visit
	// found are the objects whose subjects of the kind were named; true: they
	// are surely in the set.
	found    map[objectID]bool
	everyone bool // the wildcard was named
	kind     typeRelation
	wildcard objectID
}

type visit struct {
	object objectID
	what   what
	sure   bool
}

func (w *forward) run(ctx context.Context, resource tuplestore.Object, rule int32, kind tuplestore.Subject) error {
	w.kind = typeRelation{typeID(w.graph.types.numbers[kind.Type]), noRelation}
	if kind.IsUserset() {
		w.kind.relation = relationID(w.graph.relations.numbers[kind.Relation])
	}
	w.wildcard = w.e.find(tuplestore.Object{Type: kind.Type, ID: tuplestore.Wildcard})
	var ok bool
	if w.root, ok = w.object(w.e, resource); !ok {
		return &ResourceNotFoundError{Resource: resource}
	}
	w.enter(w.root, ruleGoal(rule, certain), true)
	for len(w.next) > 0 {
		level := w.next
		w.next = nil
		if err := w.fetch(ctx, level); err != nil {
			return err
		}
		if !w.e.isPresent(w.root) {
			return &ResourceNotFoundError{Resource: resource}
		}
		for _, at := range level {
			w.visit(at)
			if err := w.e.spent(); err != nil {
				return err
			}
		}
	}
	return nil
}

// fetch reads all tuples that the rules of a level look at.
func (w *forward) fetch(ctx context.Context, level []visit) error {
	if w.reader == nil {
		return nil
	}
	for _, at := range level {
		if at.what.isLogic() {
			continue
		}
		r := &w.program.rules[at.what.index()]
		for _, relation := range r.direct {
			w.reader.want(w.graph, at.object, relation, true)
		}
		for _, a := range r.arrows {
			w.reader.want(w.graph, at.object, a.tupleset, true)
		}
	}
	read, err := w.reader.read(ctx, w.graph)
	w.e.budget -= stepsToRead * read
	if w.wildcard == noObject { // a read may bring it into the graph
		w.wildcard = w.e.find(tuplestore.Object{Type: w.graph.types.names[w.kind.typ], ID: tuplestore.Wildcard})
	}
	return err
}

func (w *forward) enter(object objectID, what what, sure bool) {
	key := goalKey(object, what)
	if was, known := w.seen[key]; known && (was || !sure) {
		return
	}
	w.seen[key] = sure
	w.next = append(w.next, visit{object, what, sure})
}

func (w *forward) visit(at visit) {
	w.e.budget--
	if at.what.isLogic() {
		for _, operand := range w.program.logic[at.what.index()].operands {
			w.enter(at.object, ruleGoal(operand, certain), false)
		}
		return
	}
	r := &w.program.rules[at.what.index()]
	if w.kind.relation != noRelation && w.e.key(at.object).typ == w.kind.typ {
		for _, relation := range r.includes {
			if relation == w.kind.relation { // every userset contains itself
				w.note(at.object, at.sure)
			}
		}
	}
	if r.self && w.kind.relation == noRelation && w.e.key(at.object).typ == w.kind.typ && at.object != w.wildcard {
		w.note(at.object, at.sure)
	}
	for _, relation := range r.direct {
		w.each(at, relation, func(to subject, sure bool) {
			if w.e.key(to.object).typ == w.kind.typ && to.relation == w.kind.relation {
				w.note(to.object, sure)
			}
			if !to.isUserset() {
				return
			}
			if child := w.program.rule(w.e.key(to.object).typ, to.relation); child != noRule {
				w.enter(to.object, ruleGoal(child, certain), sure)
			}
		})
	}
	for _, a := range r.arrows {
		w.each(at, a.tupleset, func(to subject, sure bool) {
			if child := w.program.rule(w.e.key(to.object).typ, a.computed); child != noRule {
				w.enter(to.object, ruleGoal(child, certain), sure)
			}
		})
	}
	for _, l := range r.logic {
		w.enter(at.object, logicGoal(l, certain), false)
	}
}

// each visits the subjects of a relation of an object.
func (w *forward) each(at visit, relation relationID, visit func(to subject, sure bool)) {
	below, above := w.e.edges(at.object, relation)
	for _, found := range [2]edges{below, above} {
		for to, on := range found.subjects() {
			if w.e.budget--; w.e.spent() != nil {
				return
			}
			visit(to, at.sure && on == nil)
		}
	}
}

func (w *forward) note(object objectID, sure bool) {
	if object == w.wildcard {
		w.everyone = true
		return
	}
	was, known := w.found[object]
	if !known {
		w.e.listed()
	}
	w.found[object] = was || sure
}
