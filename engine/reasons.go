package engine

import (
	"fmt"
	"time"

	"stonetown/tuplestore"
)

// reasons tells why a proven goal holds: the path from the resource to the
// subject, and after an intersection the path of each operand. until is when the first
// relation on it expires; zero if none does.
func (e *evaluation) reasons(root int32) (steps []Reason, until time.Time) {
	w := reasonWriter{e: e}
	w.walk(root)
	return w.steps, w.until
}

type reasonWriter struct {
	e     *evaluation
	steps []Reason
	until time.Time
}

func (w *reasonWriter) walk(g int32) {
	e := w.e
	at := &e.goals[g]
	name := func(r relationID) string { return e.graph.relations.names[r] }
	object := e.object(at.object)
	if at.what.isLogic() {
		lg := &e.program.logic[at.what.index()]
		n := tuplestore.Node{Object: object, Relation: name(lg.relation)}
		if lg.exclusion {
			w.add(n.String(), "exclusion", "the subject is not among those whom %s of %s leaves out", n.Relation, n.Object)
			w.walk(at.proof.child)
			return
		}
		w.add(n.String(), "intersection", "to be %s of %s takes all of what follows", n.Relation, n.Object)
		for _, operand := range lg.operands {
			slot, _ := e.table.slot(goalKey(at.object, ruleGoal(operand, at.what.mode())))
			w.walk(slot.goal)
		}
		return
	}
	relation := name(e.program.rules[at.what.index()].relation)
	if at.proof.step == byLogic {
		if lg := e.program.logic[e.goals[at.proof.child].what.index()]; name(lg.relation) != relation {
			w.computed(object, name(lg.relation), relation)
		}
		w.walk(at.proof.child)
		return
	}
	t := tuplestore.Tuple{Object: object, Relation: name(at.proof.relation)}
	if t.Relation != relation && at.proof.step != byArrow {
		w.computed(object, t.Relation, relation)
	}
	switch at.proof.step {
	case byIdentity:
		w.add(t.Node().String(), "this", "%s is the set of its own %ss", t.Node(), t.Relation)
	case byTuple:
		t.Subject = w.subject(at.proof.subject, "")
		who := t.Subject.String()
		if t.Subject.ID == tuplestore.Wildcard {
			who = "every " + t.Subject.Type
		}
		w.add(t.String(), "this", "%s is %s of %s%s", who, t.Relation, object, w.terms(at, subject{at.proof.subject, noRelation}))
	case byUserset:
		child := &e.goals[at.proof.child]
		set := e.program.rules[child.what.index()].relation
		t.Subject = w.subject(child.object, name(set))
		w.add(t.String(), "this", "every %s of %s is %s of %s%s",
			t.Subject.Relation, t.Subject.Object(), t.Relation, object, w.terms(at, subject{child.object, set}))
		w.walk(at.proof.child)
	case byArrow:
		child := &e.goals[at.proof.child]
		t.Subject = w.subject(child.object, "")
		w.add(t.String(), "tuple_to_userset", "%s is %s of %s, and every %s of it is %s here%s",
			t.Subject, t.Relation, object, name(e.program.rules[child.what.index()].relation), relation,
			w.terms(at, subject{child.object, noRelation}))
		w.walk(at.proof.child)
	}
}

func (w *reasonWriter) subject(id objectID, relation string) tuplestore.Subject {
	o := w.e.object(id)
	return tuplestore.Subject{Type: o.Type, ID: o.ID, Relation: relation}
}

// terms says on which terms the tuple of a proof holds.
func (w *reasonWriter) terms(at *goal, to subject) string {
	below, above := w.e.edges(at.object, at.proof.relation)
	for _, found := range [2]edges{below, above} {
		if found.termed()[to] == nil {
			continue
		}
		text := ""
		if on := found.termed()[to]; on.ExpiresAt != 0 {
			expires := time.UnixMicro(on.ExpiresAt).UTC()
			text = " until " + expires.Format(time.RFC3339)
			if w.until.IsZero() || expires.Before(w.until) {
				w.until = expires
			}
		}
		if on := found.termed()[to]; on.Condition != "" {
			text += ", since the condition " + on.Condition + " is met"
		}
		return text
	}
	return ""
}

func (w *reasonWriter) computed(o tuplestore.Object, from, to string) {
	w.add(tuplestore.Node{Object: o, Relation: from}.String(), "computed", "to be %s of %s counts for %s", from, o, to)
}

func (w *reasonWriter) add(via, rewrite, text string, args ...any) {
	w.steps = append(w.steps, Reason{Via: via, Rewrite: rewrite, Text: fmt.Sprintf(text, args...)})
}
