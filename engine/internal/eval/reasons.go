package eval

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"stonetown/engine/internal/graph"
	"stonetown/engine/internal/program"
	"stonetown/engine/internal/view"
	"stonetown/tuplestore"
)

// Reason is one step of a proof, from the resource towards the subject.
type Reason struct {
	// Via is the relation that the step used, written as type:id#relation, followed by
	// @subject if the step used a tuple.
	Via     string
	Rewrite string // the kind of rewrite: this, computed, tuple_to_userset, ...
	Text    string // the step in a sentence
}

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
			w.add(n.String(), "exclusion", "the subject is not excluded from %s of %s", n.Relation, n.Object)
			w.explain(at.proof.child)
			return
		}
		w.add(n.String(), "intersection", "%s of %s requires all of the following", n.Relation, n.Object)
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
		w.add(t.Node().String(), "this", "%s is the set of its own %ss", t.Node(), t.Relation)
	case bySelf:
		t.Relation, t.Subject = relation, w.subject(at.object, "")
		w.add(t.String(), "self", "%s is %s of itself", object, relation)
	case byTuple:
		t.Subject = w.subject(at.proof.subject, "")
		subject := t.Subject.String()
		if t.Subject.ID == tuplestore.Wildcard {
			subject = "every " + t.Subject.Type
		}
		w.add(t.String(), "this", "%s is %s of %s%s", subject, t.Relation, object, w.qualifier(at, graph.Plain(at.proof.subject)))
	case byUserset:
		child := &e.goals[at.proof.child]
		set := e.program.Rules[child.part.index()].Relation
		t.Subject = w.subject(child.object, name(set))
		w.add(t.String(), "this", "every %s of %s is %s of %s%s",
			t.Subject.Relation, t.Subject.Object(), t.Relation, object, w.qualifier(at, graph.Subject{Object: child.object, Relation: set}))
		w.explain(at.proof.child)
	case byArrow:
		child := &e.goals[at.proof.child]
		t.Subject = w.subject(child.object, "")
		w.add(t.String(), "tuple_to_userset", "%s is %s of %s, and every %s of it is %s here%s",
			t.Subject, t.Relation, object, name(e.program.Rules[child.part.index()].Relation), relation,
			w.qualifier(at, graph.Plain(child.object)))
		w.explain(at.proof.child)
	}
}

// explainArrow explains an intersection arrow: the path of each linked object.
func (w *reasonWriter) explainArrow(at *goal, lg *program.Logic) {
	e := w.e
	n := tuplestore.Node{Object: e.view.Object(at.object), Relation: e.graph.Relations.Name(lg.Arrow.Tupleset)}
	computed := e.graph.Relations.Name(lg.Arrow.Computed)
	w.add(n.String(), "tuple_to_userset", "the subject is %s of every %s of %s, which makes it %s here",
		computed, n.Relation, n.Object, e.graph.Relations.Name(lg.Relation))
	var goals []int32
	below, above := e.view.Edges(at.object, lg.Arrow.Tupleset)
	for _, found := range [2]graph.Edges{below, above} {
		for to, q := range found.Subjects() {
			child := e.program.Rule(e.view.Type(to.Object), lg.Arrow.Computed)
			if child == program.NoRule || e.view.Decide(at.object, q) == view.Unmet {
				continue
			}
			if q != nil && q.ExpiresAt != 0 {
				w.expires(q) // without this link there may be none
			}
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

// qualifier describes the expiry and the condition of the tuple of a proof.
func (w *reasonWriter) qualifier(at *goal, to graph.Subject) string {
	below, above := w.e.view.Edges(at.object, at.proof.relation)
	for _, found := range [2]graph.Edges{below, above} {
		q := found.Qualified()[to]
		if q == nil {
			continue
		}
		text := ""
		if q.ExpiresAt != 0 {
			text = " until " + w.expires(q).Format(time.RFC3339)
		}
		if q.Condition != "" {
			text += ", since the condition " + q.Condition + " is met"
		}
		return text
	}
	return ""
}

// expires returns when a tuple of the proof expires, which ends the proof.
func (w *reasonWriter) expires(q *tuplestore.Qualifier) time.Time {
	at := time.UnixMicro(q.ExpiresAt).UTC()
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
