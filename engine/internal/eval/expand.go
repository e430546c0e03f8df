package eval

import (
	"slices"

	"stonetown/engine/internal/graph"
	"stonetown/engine/internal/program"
	"stonetown/engine/internal/view"
	"stonetown/tuplestore"
)

// expand adds the goals that a goal depends on, or proves it.
func (e *Evaluation) expand(g int32) {
	e.budget.Step()
	at := e.goals[g]
	if at.part.isLogic() {
		e.expandLogic(g, at)
		return
	}
	r := &e.program.Rules[at.part.index()]
	if e.subject.IsSet && at.object == e.subject.Set.Object && slices.Contains(r.Includes, e.subject.Set.Relation) {
		e.prove(g, proof{step: byIdentity, relation: e.subject.Set.Relation, child: -1})
		return
	}
	if r.Self && at.object == e.subject.Plain {
		e.prove(g, proof{step: bySelf, child: -1, subject: at.object})
		return
	}
	for _, relation := range r.Direct {
		if e.expandTuples(g, at.object, relation) {
			return
		}
	}
	for _, a := range r.Arrows {
		if e.expandArrow(g, at.object, a) {
			return
		}
	}
	for _, id := range r.Logic {
		e.depend(at.object, logicPart(id, at.part.mode()), link{parent: g, step: byLogic})
		if e.propagate(); e.goals[g].proven {
			return
		}
	}
}

func (e *Evaluation) expandLogic(g int32, at goal) {
	lg := &e.program.Logic[at.part.index()]
	switch {
	case lg.IsArrow():
		e.expandIntersectionArrow(g, at, lg.Arrow)
		return
	case lg.IsExclusion():
		e.exclusions = append(e.exclusions, g)
		if e.isSuspended(g) {
			e.goals[g].state = cleared
			e.depend(at.object, rulePart(lg.Operands[0], at.part.mode()), link{parent: g})
			e.propagate()
			return
		}
	default:
		e.goals[g].missing = int32(len(lg.Operands))
	}
	for i, operand := range lg.Operands {
		m := at.part.mode()
		if lg.IsExclusion() && i == 1 {
			m = e.subtractedMode(m)
		}
		e.depend(at.object, rulePart(operand, m), link{parent: g, operand: int16(i)})
	}
	e.propagate()
}

// subtractedMode returns the mode in which an exclusion depends on its subtracted side.
func (e *Evaluation) subtractedMode(m mode) mode {
	if !e.modes {
		return m
	}
	return certain + possible - m // certain is what is not possibly subtracted
}

// expandTuples follows the tuples of one relation of the goal's object. It reports whether
// that suffices: the goal is proven, or the work has to end.
func (e *Evaluation) expandTuples(g int32, id graph.ObjectID, relation graph.RelationID) bool {
	below, above := e.view.Edges(id, relation)
	return e.expandEdges(g, &below) || e.expandEdges(g, &above)
}

func (e *Evaluation) expandEdges(g int32, found *graph.Edges) bool {
	relation, m := found.Relation, e.goals[g].part.mode()
	if subject := e.subject.Named(found); subject != graph.NoObject {
		e.prove(g, proof{step: byTuple, relation: relation, child: -1, subject: subject})
		return true
	}
	for _, us := range found.Usersets() {
		if e.budget.Step(); e.budget.Err() != nil {
			return true
		}
		child := e.program.Rule(e.view.Type(us.Object), us.Relation)
		if child == program.NoRule {
			continue
		}
		if e.isLeaf(child) {
			set := e.graph.Edges(us.Object, e.program.Rules[child].Direct[0])
			if e.subject.Named(&set) != graph.NoObject {
				e.prove(g, proof{step: byUserset, relation: relation, child: -1})
				return true
			}
			if len(set.Usersets()) == 0 && !set.HasQualified() {
				continue
			}
		}
		e.depend(us.Object, rulePart(child, m), link{parent: g, step: byUserset, relation: relation})
		if e.propagate(); e.goals[g].proven {
			return true
		}
	}
	return found.HasQualified() && e.expandQualified(g, found)
}

// expandQualified follows the qualified tuples.
func (e *Evaluation) expandQualified(g int32, found *graph.Edges) bool {
	of, m := e.goals[g].object, e.goals[g].part.mode()
	for _, plain := range [2]graph.ObjectID{e.subject.Plain, e.subject.Everyone} {
		if plain == graph.NoObject {
			continue
		}
		e.budget.Step()
		q := found.Qualifier(graph.Plain(plain))
		if q != nil && e.holds(of, q, m) {
			e.prove(g, proof{step: byTuple, relation: found.Relation, child: -1, subject: plain})
			return true
		}
	}
	for to, q := range found.Qualified() {
		if e.budget.Step(); e.budget.Err() != nil {
			return true
		}
		if !to.IsUserset() {
			continue
		}
		child := e.program.Rule(e.view.Type(to.Object), to.Relation)
		if child == program.NoRule || !e.holds(of, q, m) {
			continue
		}
		e.depend(to.Object, rulePart(child, m), link{parent: g, step: byUserset, relation: found.Relation})
		if e.propagate(); e.goals[g].proven {
			return true
		}
	}
	return false
}

// holds reports whether a tuple of an object holds in a mode.
func (e *Evaluation) holds(of graph.ObjectID, q *tuplestore.Qualifier, m mode) bool {
	o := e.view.Decide(of, q)
	return o == view.Met || o == view.Undecided && m == possible
}

// isLeaf reports whether a rule's set can be read without a goal of its own: the graph is
// complete, no proof has to be kept and the subject is plain.
func (e *Evaluation) isLeaf(rule int32) bool {
	return e.reader == nil && e.view.Overlay == nil && !e.Explain && !e.subject.IsSet && e.program.Rules[rule].Leaf
}

// expandArrow depends on the computed relation of every object that the tupleset links to.
// It reports whether that suffices, as expandTuples does.
func (e *Evaluation) expandArrow(g int32, id graph.ObjectID, a program.Arrow) bool {
	below, above := e.view.Edges(id, a.Tupleset)
	return e.followLinks(g, &below, a.Computed) || e.followLinks(g, &above, a.Computed)
}

func (e *Evaluation) followLinks(g int32, tupleset *graph.Edges, computed graph.RelationID) bool {
	of, m := e.goals[g].object, e.goals[g].part.mode()
	for to, q := range tupleset.Subjects() {
		if e.budget.Step(); e.budget.Err() != nil {
			return true
		}
		if q != nil && !e.holds(of, q, m) {
			continue
		}
		if child := e.program.Rule(e.view.Type(to.Object), computed); child != program.NoRule {
			e.depend(to.Object, rulePart(child, m), link{parent: g, step: byArrow, relation: tupleset.Relation})
			if e.propagate(); e.goals[g].proven {
				return true
			}
		}
	}
	return false
}
