package denial

import (
	"cmp"
	"context"
	"slices"

	"stonetown/engine/internal/eval"
	"stonetown/engine/internal/graph"
	"stonetown/engine/internal/program"
	"stonetown/engine/internal/view"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// search looks for sets of changes, those with few changes first.
//
// A state of the search has the changes it has decided on and the steps it still has to
// take: the sets that must contain the subject. A step leads to one state for each way in
// which its set can contain the subject.
type search struct {
	ctx       context.Context
	question  Question
	view      *view.View
	overlay   *graph.Overlay // that of the question
	truncated bool
	found     [][]change
	reasons   map[tuplestore.Node][]eval.Reason // of exclusions
	tried     map[string]bool                   // sets of changes: whether they suffice
	trial     eval.Evaluation

	now     eval.Evaluation // what holds without changes
	nothing bool            // no tuple leads to the subject, so that nothing holds
	asked   []eval.Question // the sets that now was asked about
	unknown []eval.Question // sets that now has not met
	states  int
	ready   queue
}

// queue has states by the number of their changes, and of absent tuples among them.
type queue [MaxChanges + 1][MaxChanges + 1][]state

func (q *queue) add(s state) {
	to := &q[len(s.changes)][absent(s.changes)]
	*to = append(*to, s)
}

type state struct {
	changes []change
	steps   *step
}

// step is a set that must contain the subject: that of a rule, or of logic, for an object.
type step struct {
	object  graph.ObjectID
	index   int32 // of the rule or the logic
	isLogic bool
	above   *step // the step that led here
	next    *step // the step to take after it
}

// run searches. Behind a relation that does not hold is what the evaluation of the check did
// not meet. The search then begins anew, with an evaluation that is about that as well.
func (s *search) run() error {
	root := eval.Question{Object: s.view.Find(s.question.Resource), Rule: s.question.Rule}
	s.asked = []eval.Question{root}
	s.reasons = map[tuplestore.Node][]eval.Reason{}
	for range maxRounds {
		if err := s.evaluate(); err != nil {
			return err
		}
		s.unknown, s.states = nil, 0
		s.ready = queue{}
		s.ready.add(state{steps: &step{object: root.Object, index: root.Rule}})
		if err := s.walk(); err != nil {
			return err
		}
		if len(s.unknown) == 0 {
			return nil
		}
		s.asked = append(s.asked, s.unknown...)
	}
	return errTooMany
}

// evaluate evaluates the sets that the search has met.
func (s *search) evaluate() error {
	subject := s.subject()
	if s.nothing = s.view.Reader == nil && subject.IsUnknown(); s.nothing {
		return nil
	}
	s.now.Begin(s.view, subject)
	s.now.Explain = true
	for i := range s.asked {
		s.now.Ask(&s.asked[i])
	}
	return s.now.Run(s.ctx, s.asked)
}

// holds reports whether a set contains the subject without changes. If that is not known
// yet, the search has to begin anew.
func (s *search) holds(object graph.ObjectID, rule int32, possibly bool) (holds, known bool) {
	if s.nothing {
		return false, true
	}
	if holds, known = s.now.Holds(object, rule, possibly); known {
		return holds, true
	}
	same := func(q eval.Question) bool { return q.Object == object && q.Rule == rule }
	if !slices.ContainsFunc(s.unknown, same) {
		if len(s.unknown) == maxAlternatives {
			s.truncated = true
		} else {
			s.unknown = append(s.unknown, eval.Question{Object: object, Rule: rule})
		}
	}
	return false, false
}

// walk visits the states, and verifies the changes of those without steps. A visit adds no
// state that comes before its own.
func (s *search) walk() error {
	for changes := range s.ready {
		for absent := range s.ready[changes] {
			for states := &s.ready[changes][absent]; len(*states) > 0; {
				at := (*states)[0]
				*states = (*states)[1:]
				if err := s.visit(at); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (s *search) visit(at state) error {
	s.view.Budget.Step()
	if err := s.view.Budget.Err(); err != nil {
		return err
	}
	if s.states++; s.states > maxStates || len(s.found) == MaxWays {
		return errTooMany
	}
	switch {
	case at.steps == nil && len(at.changes) > 0:
		return s.accept(at.changes)
	case at.steps == nil, s.repeats(at.steps):
	case at.steps.isLogic:
		s.takeLogic(at)
	default:
		s.take(at)
	}
	return nil
}

// repeats reports whether a step leads to itself, which proves nothing.
func (s *search) repeats(at *step) bool {
	for a := at.above; a != nil; a = a.above {
		s.view.Budget.Step()
		if a.object == at.object && a.index == at.index && a.isLogic == at.isLogic {
			return true
		}
	}
	return false
}

// push adds a state with the same changes.
func (s *search) push(from state, steps *step) {
	s.ready.add(state{from.changes, steps})
}

// change adds a state with one change more.
func (s *search) change(from state, c change, steps *step) {
	switch {
	case slices.Contains(from.changes, c):
		s.push(from, steps)
	case len(from.changes) == MaxChanges:
		s.truncated = true
	default:
		s.push(state{changes: append(slices.Clip(from.changes), c)}, steps)
	}
}

// take takes the step to a rule's set, which is a union.
func (s *search) take(from state) {
	at := from.steps
	holds, known := s.holds(at.object, at.index, false)
	if holds {
		s.push(from, at.next)
	}
	if holds || !known {
		return
	}
	p := s.view.Program
	rule := &p.Rules[at.index]
	for _, relation := range rule.Direct {
		if !s.mayName(at.object, relation) {
			continue
		}
		own := change{kind: relate, node: s.node(at.object, relation), to: s.question.Subject}
		if s.qualifier(at.object, relation, own.to) != nil {
			own.kind = renew
		}
		s.change(from, own, at.next)
	}
	for _, relation := range rule.Direct {
		for _, t := range s.tuples(at.object, relation, false) {
			next := at.next
			if t.to.IsUserset() {
				child := p.Rule(s.view.Type(t.to.Object), t.to.Relation)
				if child == program.NoRule {
					continue
				}
				next = &step{object: t.to.Object, index: child, above: at, next: at.next}
			}
			s.follow(from, at.object, t, next)
		}
	}
	for _, a := range rule.Arrows {
		for _, t := range s.tuples(at.object, a.Tupleset, true) {
			if child := p.Rule(s.view.Type(t.to.Object), a.Computed); child != program.NoRule {
				s.follow(from, at.object, t, &step{object: t.to.Object, index: child, above: at, next: at.next})
			}
		}
	}
	for _, id := range rule.Logic {
		s.push(from, &step{object: at.object, index: id, isLogic: true, above: at, next: at.next})
	}
}

// follow adds a state that follows a tuple, which is a change if the tuple does not hold.
func (s *search) follow(from state, of graph.ObjectID, t tuple, steps *step) {
	if t.outcome == view.Met {
		s.push(from, steps)
		return
	}
	s.change(from, s.holding(of, t), steps)
}

// holding is the change that a tuple holds.
func (s *search) holding(of graph.ObjectID, t tuple) change {
	o := s.view.Object(t.to.Object)
	to := tuplestore.Subject{Type: o.Type, ID: o.ID}
	if t.to.IsUserset() {
		to.Relation = s.view.Graph.Relations.Name(t.to.Relation)
	}
	return change{kind: renew, node: s.node(of, t.relation), to: to}
}

// takeLogic takes the step to an intersection, an exclusion or an intersection arrow.
func (s *search) takeLogic(from state) {
	at := from.steps
	lg := &s.view.Program.Logic[at.index]
	switch {
	case lg.IsArrow():
		s.takeArrow(from, lg)
	case lg.IsExclusion():
		steps := &step{object: at.object, index: lg.Operands[0], above: at, next: at.next}
		excluded, known := s.holds(at.object, lg.Operands[1], true)
		switch {
		case excluded:
			node := s.node(at.object, lg.Relation)
			if s.reasons[node] == nil {
				s.reasons[node] = s.now.ReasonsFor(at.object, lg.Operands[1], true)
			}
			s.change(from, change{kind: suspend, node: node}, steps)
		case known:
			s.push(from, steps)
		}
	default:
		steps := at.next
		for _, operand := range slices.Backward(lg.Operands) {
			steps = &step{object: at.object, index: operand, above: at, next: steps}
		}
		s.push(from, steps)
	}
}

// takeArrow takes the step to an intersection arrow: the relation must hold at all linked
// objects, of which there must be one. A link that may hold counts as one that must be
// followed, and not as the one that there must be.
func (s *search) takeArrow(from state, lg *program.Logic) {
	at := from.steps
	p := s.view.Program
	steps, linked := at.next, false
	var others []tuple
	for _, t := range s.tuples(at.object, lg.Arrow.Tupleset, true) {
		child := p.Rule(s.view.Type(t.to.Object), lg.Arrow.Computed)
		if t.outcome == view.Unmet {
			if child != program.NoRule {
				others = append(others, t)
			}
			continue
		}
		if child == program.NoRule {
			return
		}
		steps = &step{object: t.to.Object, index: child, above: at, next: steps}
		linked = linked || t.outcome == view.Met
		if t.outcome == view.Undecided {
			others = append(others, t)
		}
	}
	if linked {
		s.push(from, steps)
		return
	}
	for _, t := range others {
		with := steps
		if t.outcome == view.Unmet {
			child := p.Rule(s.view.Type(t.to.Object), lg.Arrow.Computed)
			with = &step{object: t.to.Object, index: child, above: at, next: steps}
		}
		s.change(from, s.holding(at.object, t), with)
	}
}

// tuple is a tuple that a step may follow.
type tuple struct {
	relation graph.RelationID
	to       graph.Subject
	outcome  view.Outcome
}

// tuples returns the tuples of a relation of an object: all or, of those with plain
// subjects, only the qualified ones of the subject's wildcard. They are in an order that
// does not depend on chance.
func (s *search) tuples(of graph.ObjectID, relation graph.RelationID, all bool) []tuple {
	var list []tuple
	add := func(to graph.Subject, q *tuplestore.Qualifier) bool {
		s.view.Budget.Step()
		list = append(list, tuple{relation, to, s.view.Decide(of, q)})
		return s.view.Budget.Err() == nil
	}
	everyone := graph.Plain(s.subject().Everyone)
	below, above := s.view.Edges(of, relation)
	for _, found := range [2]graph.Edges{below, above} {
		if all {
			for to, q := range found.Subjects() {
				if !add(to, q) {
					break
				}
			}
			continue
		}
		for _, us := range found.Usersets() {
			if !add(graph.Subject(us), nil) {
				break
			}
		}
		for to, q := range found.Qualified() {
			s.view.Budget.Step()
			if (to.IsUserset() || to == everyone) && !add(to, q) {
				break
			}
		}
	}
	slices.SortFunc(list, func(a, b tuple) int {
		return cmp.Or(cmp.Compare(a.to.Object, b.to.Object), cmp.Compare(a.to.Relation, b.to.Relation), -cmp.Compare(a.outcome, b.outcome))
	})
	if len(list) > maxAlternatives {
		s.truncated = true
		list = list[:maxAlternatives]
	}
	return list
}

// mayName reports whether a tuple of a relation of an object may name the subject.
func (s *search) mayName(of graph.ObjectID, relation graph.RelationID) bool {
	o := s.view.Object(of)
	shape := schema.SubjectType(s.question.Subject.Shape())
	return o.ID != tuplestore.Wildcard &&
		s.view.Program.Compiled.Allows(o.Type, s.view.Graph.Relations.Name(relation), shape) == schema.Allowed
}

func (s *search) node(of graph.ObjectID, relation graph.RelationID) tuplestore.Node {
	return tuplestore.Node{Object: s.view.Object(of), Relation: s.view.Graph.Relations.Name(relation)}
}
