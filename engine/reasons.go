package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"stonetown/tuplestore"
)

// reasons tells why a proven goal holds: the path from the resource to the
// subject, and after an intersection the path of each operand. Each goal is told
// once, since the operands of nested intersections may share them: told again and
// again they would grow without bound. until is when the first relation on the path
// expires; zero if none does.
func (e *evaluation) reasons(root int32) (steps []Reason, until time.Time) {
	w := reasonWriter{e: e, told: map[int32]bool{}}
	w.walk(root)
	return w.steps, w.until
}

type reasonWriter struct {
	e     *evaluation
	told  map[int32]bool
	steps []Reason
	until time.Time
}

func (w *reasonWriter) walk(g int32) {
	if w.told[g] {
		return
	}
	w.told[g] = true
	e := w.e
	at := &e.goals[g]
	name := func(r relationID) string { return e.graph.relations.names[r] }
	object := e.object(at.object)
	if at.what.isLogic() {
		lg := &e.program.logic[at.what.index()]
		n := tuplestore.Node{Object: object, Relation: name(lg.relation)}
		if lg.isArrow() {
			w.all(at, lg)
			return
		}
		if lg.isExclusion() {
			w.add(n.String(), "exclusion", "the subject is not excluded from %s of %s", n.Relation, n.Object)
			w.walk(at.proof.child)
			return
		}
		w.add(n.String(), "intersection", "%s of %s requires all of the following", n.Relation, n.Object)
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
	if t.Relation != relation && at.proof.step != byArrow && at.proof.step != bySelf {
		w.computed(object, t.Relation, relation)
	}
	switch at.proof.step {
	case byIdentity:
		w.add(t.Node().String(), "this", "%s is the set of its own %ss", t.Node(), t.Relation)
	case bySelf:
		t.Relation, t.Subject = relation, w.subject(at.object, "")
		w.add(t.String(), "self", "%s is %s of itself", object, relation)
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

// all tells why an intersection arrow holds: the path of each linked object.
func (w *reasonWriter) all(at *goal, lg *logic) {
	e := w.e
	n := tuplestore.Node{Object: e.object(at.object), Relation: e.graph.relations.names[lg.arrow.tupleset]}
	computed := e.graph.relations.names[lg.arrow.computed]
	w.add(n.String(), "tuple_to_userset", "the subject is %s of every %s of %s, which makes it %s here",
		computed, n.Relation, n.Object, e.graph.relations.names[lg.relation])
	var goals []int32
	below, above := e.edges(at.object, lg.arrow.tupleset)
	for _, found := range [2]edges{below, above} {
		for to, on := range found.subjects() {
			child := e.program.rule(e.key(to.object).typ, lg.arrow.computed)
			if child == noRule || e.verdict(at.object, on) == unmet {
				continue
			}
			if on != nil && on.ExpiresAt != 0 {
				w.expires(on) // without this link there may be none
			}
			if slot, asked := e.table.slot(goalKey(to.object, ruleGoal(child, at.what.mode()))); asked {
				goals = append(goals, slot.goal)
			}
		}
	}
	slices.SortFunc(goals, func(a, b int32) int {
		return strings.Compare(e.object(e.goals[a].object).String(), e.object(e.goals[b].object).String())
	})
	for _, g := range goals {
		w.walk(g)
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
			text = " until " + w.expires(on).Format(time.RFC3339)
		}
		if on := found.termed()[to]; on.Condition != "" {
			text += ", since the condition " + on.Condition + " is met"
		}
		return text
	}
	return ""
}

// expires is when terms end, which the proof does not outlive.
func (w *reasonWriter) expires(on *tuplestore.Terms) time.Time {
	at := time.UnixMicro(on.ExpiresAt).UTC()
	if w.until.IsZero() || at.Before(w.until) {
		w.until = at
	}
	return at
}

func (w *reasonWriter) computed(o tuplestore.Object, from, to string) {
	w.add(tuplestore.Node{Object: o, Relation: from}.String(), "computed", "%s of %s implies %s", from, o, to)
}

func (w *reasonWriter) add(via, rewrite, text string, args ...any) {
	w.steps = append(w.steps, Reason{Via: via, Rewrite: rewrite, Text: fmt.Sprintf(text, args...)})
}
