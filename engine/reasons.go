package engine

import "stonetown/tuplestore"

// reasons tells why a proven goal holds: the path from the resource to the
// subject, and after an intersection the path of each operand.
func (e *evaluation) reasons(root int32) []Reason {
	w := reasonWriter{e: e}
	w.walk(root)
	return w.steps
}

type reasonWriter struct {
	e     *evaluation
	steps []Reason
}

func (w *reasonWriter) walk(g int32) {
	e := w.e
	at := &e.goals[g]
	name := func(r relationID) string { return e.graph.relations.names[r] }
	object := e.graph.object(at.object)
	if at.isLogic() {
		lg := &e.program.logic[at.index()]
		via := tuplestore.Node{Object: object, Relation: name(lg.relation)}.String()
		if lg.exclusion {
			w.add(via, "exclusion")
			w.walk(at.proof.child)
			return
		}
		w.add(via, "intersection")
		for _, operand := range lg.operands {
			slot, _ := e.table.slot(goalKey(at.object, operand<<1))
			w.walk(slot.goal)
		}
		return
	}
	rule := &e.program.rules[at.index()]
	if at.proof.step == byLogic {
		if lg := e.program.logic[e.goals[at.proof.child].index()]; lg.relation != rule.relation {
			w.add(tuplestore.Node{Object: object, Relation: name(lg.relation)}.String(), "computed")
		}
		w.walk(at.proof.child)
		return
	}
	t := tuplestore.Tuple{Object: object, Relation: name(at.proof.relation)}
	if at.proof.relation != rule.relation && at.proof.step != byArrow {
		w.add(t.Node().String(), "computed")
	}
	switch at.proof.step {
	case byIdentity:
		w.add(t.Node().String(), "this")
	case byTuple:
		o := e.graph.object(at.proof.subject)
		t.Subject = tuplestore.Subject{Type: o.Type, ID: o.ID}
		w.add(t.String(), "this")
	case byUserset, byArrow:
		child := &e.goals[at.proof.child]
		o := e.graph.object(child.object)
		t.Subject = tuplestore.Subject{Type: o.Type, ID: o.ID}
		if at.proof.step == byArrow {
			w.add(t.String(), "tuple_to_userset")
		} else {
			t.Subject.Relation = name(e.program.rules[child.index()].relation)
			w.add(t.String(), "this")
		}
		w.walk(at.proof.child)
	}
}

func (w *reasonWriter) add(via, rewrite string) {
	w.steps = append(w.steps, Reason{Via: via, Rewrite: rewrite})
}
