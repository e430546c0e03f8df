package eval

import (
	"stonetown/engine/internal/graph"
	"stonetown/engine/internal/program"
	"stonetown/engine/internal/view"
)

// linked are the objects that an intersection arrow links to.
type linked struct {
	sure      []graph.ObjectID // by links that hold
	undecided []graph.ObjectID // by links whose condition cannot be decided
}

// expandIntersectionArrow depends on the computed relation of every object that an
// intersection arrow links to. There must be at least one such object. If the type of one
// has no such relation, the goal fails.
//
// A link whose condition cannot be decided may exist or not. The goal is certain if the
// relation also holds at its object and another link is sure. It is possible if the
// relation holds at the objects of the sure links or, without any, at one of the others.
func (e *Evaluation) expandIntersectionArrow(g int32, at goal, a program.Arrow) {
	l := &e.linked
	l.sure, l.undecided = l.sure[:0], l.undecided[:0]
	below, above := e.view.Edges(at.object, a.Tupleset)
	if !e.addLinks(at.object, &below) || !e.addLinks(at.object, &above) {
		return
	}
	m := at.part.mode()
	switch {
	case len(l.sure) == 0 && m == possible:
		e.goals[g].missing = 1
		for _, to := range l.undecided {
			e.dependLinked(g, to, a.Computed, m)
		}
	case len(l.sure) == 0:
		return
	default:
		required := l.sure
		if m == certain && e.modes {
			required = append(required, l.undecided...)
			l.sure = required
		}
		e.goals[g].missing = int32(len(required))
		for _, to := range required {
			if !e.dependLinked(g, to, a.Computed, m) {
				return // missing does not reach 0
			}
		}
	}
	e.propagate()
}

// addLinks adds the objects that a tupleset links to. It reports whether it added all: if
// not, the work has to end.
func (e *Evaluation) addLinks(of graph.ObjectID, tupleset *graph.Edges) bool {
	l := &e.linked
	for to, q := range tupleset.Subjects() {
		if e.budget.Step(); e.budget.Err() != nil {
			return false
		}
		switch e.view.Decide(of, q) {
		case view.Met:
			l.sure = append(l.sure, to.Object)
		case view.Undecided:
			l.undecided = append(l.undecided, to.Object)
		}
	}
	return true
}

// dependLinked makes an intersection arrow depend on a relation of a linked object. It
// reports whether the object's type has the relation.
func (e *Evaluation) dependLinked(g int32, to graph.ObjectID, computed graph.RelationID, m mode) bool {
	child := e.program.Rule(e.view.Type(to), computed)
	if child == program.NoRule {
		return false
	}
	e.depend(to, rulePart(child, m), link{parent: g})
	return true
}
