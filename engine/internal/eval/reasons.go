package eval

import (
	"slices"
	"strings"
	"time"

	"stonetown/engine/internal/graph"
	"stonetown/engine/internal/program"
	"stonetown/engine/internal/view"
	"stonetown/tuplestore"
)

// Reasons returns why the answer to a question is that it holds: the path from the resource
// to the subject, and after an intersection the path of each operand. Each goal is explained
// once: the operands of nested intersections may share goals, and the number of paths has no
// bound. until is when the first relation on the path expires; zero if none does.
func (e *Evaluation) Reasons(q Question) (steps []Reason, until time.Time) {
	w := reasonWriter{e: e, explained: map[int32]bool{}, operand: -1}
	w.explain(q.goal)
	return w.steps, w.until
}

type reasonWriter struct {
	e         *Evaluation
	explained map[int32]bool
	operand   int32 // a goal that is only a part of its relation, or -1
	steps     []Reason
	until     time.Time
}

func (w *reasonWriter) explain(g int32) {
	if w.explained[g] {
		return
	}
	w.explained[g] = true
	e := w.e
	at := &e.goals[g]
	name := e.graph.Relations.Name
	object := e.view.Object(at.object)
	if at.part.isLogic() {
		lg := &e.program.Logic[at.part.index()]
		n := tuplestore.Node{Object: object, Relation: name(lg.Relation)}
		if lg.IsArrow() {
			w.explainArrow(at, lg)
			return
		}
		if lg.IsExclusion() {
			w.add(ExclusionReason(n))
			w.explain(at.proof.child)
			return
		}
		w.add(IntersectionReason(n))
		for _, operand := range lg.Operands {
			child, _ := e.table.Find(goalKey(at.object, rulePart(operand, at.part.mode())))
			w.explain(child)
		}
		return
	}
	relation := name(e.program.Rules[at.part.index()].Relation)
	if at.proof.step == byLogic {
		if lg := e.program.Logic[e.goals[at.proof.child].part.index()]; name(lg.Relation) != relation && g != w.operand {
			w.computed(object, name(lg.Relation), relation)
		}
		w.explain(at.proof.child)
		return
	}
	t := tuplestore.Tuple{Object: object, Relation: name(at.proof.relation)}
	if t.Relation != relation && g != w.operand && at.proof.step != byArrow && at.proof.step != bySelf {
		w.computed(object, t.Relation, relation)
	}
	switch at.proof.step {
	case byIdentity:
		w.add(IdentityReason(t.Node()))
	case bySelf:
		w.add(SelfReason(tuplestore.Node{Object: object, Relation: relation}))
	case byTuple:
		t.Subject = w.subject(at.proof.subject, "")
		w.add(TupleReason(t, w.qualifier(at, graph.Plain(at.proof.subject))))
	case byUserset:
		child := &e.goals[at.proof.child]
		set := e.program.Rules[child.part.index()].Relation
		t.Subject = w.subject(child.object, name(set))
		w.add(UsersetReason(t, w.qualifier(at, graph.Subject{Object: child.object, Relation: set})))
		w.explain(at.proof.child)
	case byArrow:
		child := &e.goals[at.proof.child]
		to, q := w.link(at, child.object)
		t.Subject = w.subject(to.Object, "")
		if to.IsUserset() {
			t.Subject.Relation = name(to.Relation)
		}
		w.until = Earliest(w.until, q)
		w.add(ArrowReason(t, q, name(e.program.Rules[child.part.index()].Relation), relation))
		w.explain(at.proof.child)
	}
}

// explainArrow explains an intersection arrow: the path of each linked object.
func (w *reasonWriter) explainArrow(at *goal, lg *program.Logic) {
	e := w.e
	n := tuplestore.Node{Object: e.view.Object(at.object), Relation: e.graph.Relations.Name(lg.Arrow.Tupleset)}
	computed := e.graph.Relations.Name(lg.Arrow.Computed)
	w.add(EveryLinkReason(n, computed, e.graph.Relations.Name(lg.Relation)))
	var goals []int32
	below, above := e.view.Edges(at.object, lg.Arrow.Tupleset)
	for _, found := range [2]graph.Edges{below, above} {
		for to, q := range found.Subjects() {
			child := e.program.Rule(e.view.Type(to.Object), lg.Arrow.Computed)
			if child == program.NoRule || e.view.Decide(at.object, q) == view.Unmet {
				continue
			}
			w.until = Earliest(w.until, q) // without this link there may be none
			if linked, found := e.table.Find(goalKey(to.Object, rulePart(child, at.part.mode()))); found {
				goals = append(goals, linked)
			}
		}
	}
	slices.SortFunc(goals, func(a, b int32) int {
		return strings.Compare(e.view.Object(e.goals[a].object).String(), e.view.Object(e.goals[b].object).String())
	})
	for _, g := range goals {
		w.explain(g)
	}
}

func (w *reasonWriter) subject(id graph.ObjectID, relation string) tuplestore.Subject {
	o := w.e.view.Object(id)
	return tuplestore.Subject{Type: o.Type, ID: o.ID, Relation: relation}
}

// qualifier returns the qualifier of the tuple of a proof, nil if it has none.
func (w *reasonWriter) qualifier(at *goal, to graph.Subject) *tuplestore.Qualifier {
	below, above := w.e.view.Edges(at.object, at.proof.relation)
	for _, found := range [2]graph.Edges{below, above} {
		if q := found.Qualifier(to); q != nil {
			w.until = Earliest(w.until, q)
			return q
		}
	}
	return nil
}

// link returns the tuple by which an arrow leads to an object: any that holds, also one whose
// subject is a userset of the object.
func (w *reasonWriter) link(at *goal, object graph.ObjectID) (graph.Subject, *tuplestore.Qualifier) {
	below, above := w.e.view.Edges(at.object, at.proof.relation)
	for _, found := range [2]graph.Edges{below, above} {
		if found.Has(object) {
			return graph.Plain(object), nil
		}
		for to, q := range found.Subjects() {
			if to.Object == object && w.e.holds(at.object, q, at.part.mode()) {
				return to, q
			}
		}
	}
	return graph.Plain(object), nil
}

func (w *reasonWriter) computed(o tuplestore.Object, from, to string) {
	w.add(ComputedReason(tuplestore.Node{Object: o, Relation: from}, to))
}

func (w *reasonWriter) add(r Reason) { w.steps = append(w.steps, r) }
