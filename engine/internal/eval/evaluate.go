// Package eval evaluates rewrites of every kind: unions, intersections, exclusions, also
// recursive ones, and conditions that may be undecided.
//
// An [Evaluation] works as Datalog engines do. Breadth first, it collects the goals that the
// questions lead to, each once however many paths lead to it, and from every tuple that
// names the subject it propagates proof along links to the goals that depend on it. Cycles
// need no special case: a goal that is met again gets one more link. A goal that is
// unproven when nothing is left to expand is false. Only then are exclusions answered,
// stratum by stratum, because they depend on what is false. Exclusions that are recursive
// have no stratum of their own and are answered along the tuples (recursion.go). The
// evaluation stops as soon as every question is answered.
//
// A tuple whose condition cannot be decided, because values are missing, first counts as
// absent. Only if such a tuple was met, all questions are evaluated again in two modes:
// whether the answer is certain, without such tuples, and whether it is possible, with
// them. The mode changes for what an exclusion subtracts. An answer is valid if it is
// certain, or not even possible.
//
// On a complete graph a level is expanded from memory. With a reader, the tuples of a level
// are first read for all of its goals at once, so the number of reads is the depth of the
// graph and not its size.
package eval

import (
	"context"
	"slices"

	"stonetown/engine/internal/graph"
	"stonetown/engine/internal/program"
	"stonetown/engine/internal/view"
	"stonetown/engine/internal/work"
	"stonetown/tuplestore"
)

// Question asks whether the subject is in the set that a rule gives for an object.
type Question struct {
	Query  int // an index of the caller's
	Object graph.ObjectID
	Rule   int32

	goal int32
	// possibly is the goal of the same question in the mode possible, if there are two.
	possibly int32
}

// Evaluation answers questions about one subject in one view. It can be used again after
// Begin.
type Evaluation struct {
	// Explain keeps every step of a proof, for Reasons.
	Explain bool
	// Suspended are nodes whose exclusions subtract nothing.
	Suspended map[tuplestore.Node]bool

	view    *view.View
	graph   *graph.Graph
	program *program.Program
	budget  *work.Budget
	reader  *view.Reader // nil: the graph is complete
	subject view.Subject
	modes   bool // goals are evaluated in two modes

	goals      []goal
	links      []link
	table      graph.Table // finds goals
	frontier   []int32
	next       []int32
	exclusions []int32
	proven     []int32 // proven goals whose parents have not been notified

	linked    linked    // of the intersection arrow that is expanded
	recursion recursion // recursion.go

	open    int // roots that are not decided
	settled int // exclusions up to this stratum are answered
}

// Begin starts an evaluation about a subject, without questions.
func (e *Evaluation) Begin(v *view.View, s view.Subject) {
	e.view, e.graph, e.program, e.budget, e.reader = v, v.Graph, v.Program, &v.Budget, v.Reader
	e.subject = s
	e.Reset()
}

// GraphIsComplete makes the evaluation use only tuples that are in the graph already.
func (e *Evaluation) GraphIsComplete() { e.reader = nil }

// SetSubject removes all questions and sets the subject of the next ones.
func (e *Evaluation) SetSubject(s view.Subject) {
	e.subject = s
	e.Reset()
}

// Reset removes all questions.
func (e *Evaluation) Reset() {
	e.goals, e.links, e.frontier, e.next = e.goals[:0], e.links[:0], e.frontier[:0], e.next[:0]
	e.exclusions, e.proven = e.exclusions[:0], e.proven[:0]
	e.table.Clear()
	e.open, e.settled, e.modes = 0, -1, false
	e.view.Undecided = false
}

// maxKept is the number of goals for which an evaluation keeps memory.
const maxKept = 1 << 16

// Release ends the use of the view, and keeps memory for the next use.
func (e *Evaluation) Release() {
	if cap(e.goals) > maxKept {
		*e = Evaluation{}
		return
	}
	e.recursion.cycles = nil
	e.Suspended = nil
	e.Explain, e.view, e.graph, e.program, e.budget, e.reader = false, nil, nil, nil, nil, nil
}

// Ask adds a question. q.Object and q.Rule are set.
func (e *Evaluation) Ask(q *Question) { q.goal = e.root(q, certain) }

func (e *Evaluation) root(q *Question, m mode) int32 {
	g := e.goal(q.Object, rulePart(q.Rule, m))
	if !e.goals[g].root {
		e.goals[g].root = true
		e.open++
	}
	return g
}

// Run evaluates the questions, which have all been asked since the last reset.
func (e *Evaluation) Run(ctx context.Context, questions []Question) error {
	if err := e.run(ctx); err != nil {
		return err
	}
	if !e.view.Undecided {
		return nil
	}
	e.askInModes(questions)
	return e.run(ctx)
}

// askInModes asks the questions again, in both modes.
func (e *Evaluation) askInModes(questions []Question) {
	e.Reset()
	e.modes = true
	for i := range questions {
		q := &questions[i]
		q.goal, q.possibly = e.root(q, certain), e.root(q, possible)
	}
}

// Answer returns the answer to a question after Run. It fails with [*NegativeCycleError] or
// [*view.ConditionError].
//
// If conditions are undecided, the answer lies between that of the certain goal and that of
// the possible one. If both are cyclic, the question is cyclic whatever the conditions are.
func (e *Evaluation) Answer(q Question) (bool, error) {
	at := &e.goals[q.goal]
	switch {
	case at.proven:
		return true, nil
	case !e.modes && at.state != cyclic:
		return false, nil
	case e.modes:
		switch possibly := &e.goals[q.possibly]; {
		case !possibly.proven && possibly.state != cyclic:
			return false, nil
		case possibly.proven, at.state != cyclic:
			return false, e.view.ConditionError()
		}
	}
	return false, &NegativeCycleError{Node: e.cycle(q.goal)}
}

// run evaluates the roots.
func (e *Evaluation) run(ctx context.Context) error {
	for e.advance() {
		if e.reader != nil {
			e.want()
			if err := e.reader.Read(ctx, e.budget); err != nil {
				return err
			}
		}
		if err := e.expandFrontier(); err != nil {
			return err
		}
	}
	return e.settle()
}

// advance makes the goals of the next level the frontier. It reports whether there are any,
// and a root that depends on them.
func (e *Evaluation) advance() bool {
	if e.reader == nil && e.subject.IsUnknown() {
		return false // nothing can be proven
	}
	if len(e.next) == 0 || e.open == 0 {
		return false
	}
	e.frontier, e.next = e.next, e.frontier[:0]
	return true
}

func (e *Evaluation) expandFrontier() error {
	for _, g := range e.frontier {
		if e.goals[g].proven {
			continue
		}
		e.expand(g)
		if err := e.budget.Err(); err != nil {
			return err
		}
		if e.open == 0 {
			return nil
		}
	}
	return nil
}

// want adds the tuples that the goals of the frontier depend on to the next read.
func (e *Evaluation) want() {
	for _, g := range e.frontier {
		at := &e.goals[g]
		if at.proven {
			continue
		}
		if at.part.isLogic() {
			if lg := &e.program.Logic[at.part.index()]; lg.IsArrow() {
				e.reader.WantAll(at.object, lg.Arrow.Tupleset)
			}
			continue
		}
		rule := &e.program.Rules[at.part.index()]
		for _, a := range rule.Arrows {
			e.reader.WantAll(at.object, a.Tupleset)
		}
		for _, relation := range rule.Direct {
			e.reader.Want(at.object, relation, e.subject)
		}
	}
}

// goal returns the goal of a part of the program for an object. A new goal is added to the
// next frontier.
func (e *Evaluation) goal(object graph.ObjectID, p part) int32 {
	g := int32(len(e.goals))
	if have, found := e.table.Insert(goalKey(object, p), g); found {
		return have
	}
	e.goals = append(e.goals, goal{object: object, part: p, parents: -1})
	e.next = append(e.next, g)
	return g
}

// depend makes a parent depend on a goal.
func (e *Evaluation) depend(object graph.ObjectID, p part, l link) {
	child := e.goal(object, p)
	if e.goals[child].proven {
		e.notify(child, l)
		return
	}
	l.next = e.goals[child].parents
	e.goals[child].parents = int32(len(e.links))
	e.links = append(e.links, l)
}

// prove marks a goal as proven and propagates that.
func (e *Evaluation) prove(g int32, p proof) {
	e.mark(g, p)
	e.propagate()
}

// propagate notifies the parents of proven goals, until no goal is newly proven.
func (e *Evaluation) propagate() {
	for len(e.proven) > 0 {
		child := e.proven[len(e.proven)-1]
		e.proven = e.proven[:len(e.proven)-1]
		for l := e.goals[child].parents; l >= 0; l = e.links[l].next {
			e.notify(child, e.links[l])
		}
	}
}

func (e *Evaluation) mark(g int32, p proof) {
	at := &e.goals[g]
	if at.proven {
		return
	}
	at.proven = true
	at.proof = p
	if at.root {
		e.open--
	}
	e.proven = append(e.proven, g)
}

// notify updates a parent of a proven goal.
func (e *Evaluation) notify(child int32, l link) {
	parent := &e.goals[l.parent]
	if !parent.part.isLogic() {
		e.mark(l.parent, proof{step: l.step, relation: l.relation, child: child})
		return
	}
	if !e.program.Logic[parent.part.index()].IsExclusion() {
		if parent.missing--; parent.missing == 0 {
			e.mark(l.parent, proof{step: byOperands, child: -1})
		}
		return
	}
	if l.operand == 0 {
		parent.based = true
		parent.proof.child = child
		e.answerExclusion(l.parent)
	} else {
		parent.missing = -1 // the subtracted side holds
	}
}

// answerExclusion proves an exclusion whose stratum is settled or whose subtracted side is
// refuted, if its base holds and its subtracted side does not.
func (e *Evaluation) answerExclusion(g int32) {
	at := &e.goals[g]
	if at.based && at.missing == 0 && (at.state == cleared || e.program.Logic[at.part.index()].Stratum <= e.settled) {
		e.mark(g, proof{step: byBase, child: at.proof.child})
	}
}

// settle answers the exclusions, lowest stratum first. All goals are expanded, so what
// lower strata have not proven is false.
func (e *Evaluation) settle() error {
	if e.open == 0 {
		return nil
	}
	if e.program.Local && slices.ContainsFunc(e.exclusions, e.isLocal) {
		return e.settleRecursive()
	}
	stratum := func(g int32) int { return e.program.Logic[e.goals[g].part.index()].Stratum }
	slices.SortFunc(e.exclusions, func(a, b int32) int { return stratum(a) - stratum(b) })
	for i := 0; i < len(e.exclusions) && e.open > 0; {
		e.settled = stratum(e.exclusions[i])
		for ; i < len(e.exclusions) && stratum(e.exclusions[i]) == e.settled; i++ {
			e.answerExclusion(e.exclusions[i])
		}
		e.propagate()
	}
	return nil
}
