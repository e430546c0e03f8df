// Package denial explains why a check is denied: what would have to change for it to be
// allowed.
//
// A [Way] is a set of changes that suffices and of which no part suffices: relations to be
// written, and exclusions that must not apply. [Find] searches for ways with few changes
// first. The rewrites suggest candidates: it walks them from the resource, and each step
// that needs a tuple that does not hold is a change. That ignores that a relation can also
// take away access, through an exclusion. So each candidate and each part of it is then
// evaluated, with the relations as contextual tuples, by the evaluation that answers checks.
// What is returned is therefore true, but it need not be everything.
//
// Only relations that name the subject of the check are proposed, and relations that exist
// and do not hold, because they have expired or their condition is not met: there is no end
// of other objects that the resource could be linked to.
package denial

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"stonetown/engine/internal/eval"
	"stonetown/engine/internal/graph"
	"stonetown/engine/internal/view"
	"stonetown/engine/internal/work"
	"stonetown/tuplestore"
)

// Limits of an explanation. Beyond them, it is truncated.
const (
	MaxWays         = 10
	MaxChanges      = 5    // of a way
	maxStates       = 2000 // of the search
	maxAlternatives = 100  // of one step of the search
	maxTrials       = 500
	maxRounds       = 4 // relations in a row that do not hold
	maxSteps        = 300_000
)

// State is why a relation does not hold.
type State string

const (
	Absent    State = "absent"
	Expired   State = "expired"
	Unmet     State = "condition_unmet"
	Undecided State = "condition_undecided"
)

// Relation is a relation that does not hold. If it held, it would have no qualifier.
type Relation struct {
	tuplestore.Tuple
	State State
	// Qualifier is that of the relation, unless it is absent.
	Qualifier tuplestore.Qualifier
	// Values are the values with which its condition was evaluated, as a JSON object.
	Values []byte
}

// Exclusion is an exclusion that applies to the subject.
type Exclusion struct {
	Node tuplestore.Node // whose rewrite has the exclusion
	// Reasons are why the subject is in the subtracted set.
	Reasons []eval.Reason
}

// Way is a set of changes that suffices for the check to be allowed. No part of it suffices.
type Way struct {
	Relations  []Relation
	Exclusions []Exclusion
}

// Denial is the explanation of a denied check.
type Denial struct {
	// Ways have few changes first and, of as many, those to relations that exist.
	Ways []Way
	// Truncated: there may be other ways, because a limit was reached.
	Truncated bool
}

// Question is a check that was denied.
type Question struct {
	View       *view.View
	Resource   tuplestore.Object
	Rule       int32
	Subject    tuplestore.Subject
	Contextual []tuplestore.Fact // those of the view's overlay
}

// Budget returns the budget of the explanations of one request, within the limits of an
// attempt.
func Budget(ctx context.Context, l work.Limits) work.Budget {
	l.Most = min(l.Most, maxSteps)
	return work.NewBudget(ctx, l)
}

// Find explains a denied check with the budget of its view, which comes from [Budget]. It
// fails as [work.Budget.Err] does, except that a budget that is exhausted truncates the
// explanation.
func Find(ctx context.Context, q Question) (*Denial, error) {
	s := search{ctx: ctx, question: q, view: q.View, overlay: q.View.Overlay, tried: map[string]bool{}}
	err := s.run()
	if _, exhausted := errors.AsType[*work.BudgetError](err); exhausted || errors.Is(err, errTooMany) {
		s.truncated, err = true, nil
	}
	if err != nil {
		return nil, err
	}
	ways, err := s.ways()
	return &Denial{Ways: ways, Truncated: s.truncated}, err
}

// change is a tuple that would have to hold or, without a subject, a node whose exclusions
// must not apply.
type change struct {
	kind changeKind
	node tuplestore.Node
	to   tuplestore.Subject
}

type changeKind int8

const (
	renew   changeKind = iota // a tuple that exists, and does not hold
	relate                    // a tuple that does not exist
	suspend                   // exclusions
)

// absent returns the number of tuples among changes that do not exist.
func absent(changes []change) int {
	n := 0
	for _, c := range changes {
		if c.kind == relate {
			n++
		}
	}
	return n
}

func (c change) key() string {
	return string(rune('0'+c.kind)) + tuplestore.Tuple{Object: c.node.Object, Relation: c.node.Relation, Subject: c.to}.String()
}

// keyOf identifies a set of changes.
func keyOf(changes []change) string {
	keys := make([]string, len(changes))
	for i, c := range changes {
		keys[i] = c.key()
	}
	slices.Sort(keys)
	return strings.Join(keys, "\x00")
}

// accept verifies a candidate, and adds the smallest part of it that suffices to the answer.
func (s *search) accept(candidate []change) error {
	for _, known := range s.found {
		if isPart(known, candidate) {
			return nil
		}
	}
	if suffices, err := s.suffices(candidate); !suffices {
		return err
	}
	parts := make([][]change, 0, 1<<len(candidate))
	for mask := 1; mask < 1<<len(candidate); mask++ {
		var part []change
		for i, c := range candidate {
			if mask>>i&1 == 1 {
				part = append(part, c)
			}
		}
		parts = append(parts, part)
	}
	slices.SortStableFunc(parts, func(a, b []change) int { return len(a) - len(b) })
	for _, part := range parts {
		suffices, err := s.suffices(part)
		if err != nil {
			return err
		}
		if !suffices {
			continue
		}
		for _, known := range s.found {
			if isPart(known, part) {
				return nil
			}
		}
		s.found = append(s.found, part)
		return nil
	}
	return nil
}

func isPart(part, of []change) bool {
	return !slices.ContainsFunc(part, func(c change) bool { return !slices.Contains(of, c) })
}

// errTooMany ends an explanation at one of its limits.
var errTooMany = errors.New("limit of an explanation")

// suffices reports whether the check is allowed with some changes.
func (s *search) suffices(changes []change) (bool, error) {
	key := keyOf(changes)
	if known, tried := s.tried[key]; tried {
		return known, nil
	}
	if len(s.tried) == maxTrials {
		return false, errTooMany
	}
	facts := slices.Clone(s.question.Contextual)
	suspended := map[tuplestore.Node]bool{}
	for _, c := range changes {
		if c.kind == suspend {
			suspended[c.node] = true
		} else {
			facts = append(facts, tuplestore.Fact{Tuple: tuplestore.Tuple{Object: c.node.Object, Relation: c.node.Relation, Subject: c.to}})
		}
	}
	v := s.view
	v.Budget.Spend(len(facts))
	v.Overlay = nil
	if len(facts) > 0 {
		v.Overlay = graph.NewOverlay(v.Graph, v.Reader != nil, facts)
	}
	defer func() { v.Overlay = s.overlay }()
	s.trial.Begin(v, s.subject())
	s.trial.Suspended = suspended
	q := eval.Question{Object: v.Find(s.question.Resource), Rule: s.question.Rule}
	s.trial.Ask(&q)
	questions := []eval.Question{q}
	if err := s.trial.Run(s.ctx, questions); err != nil {
		return false, err
	}
	allowed, err := s.trial.Answer(questions[0])
	allowed = allowed && err == nil // an error is one of the conditions or a cycle: no answer
	s.tried[key] = allowed
	return allowed, nil
}

// subject returns the subject in the numbers of the view with its present overlay.
func (s *search) subject() view.Subject { return s.view.Subject(s.question.Subject) }

// ways describes the changes that were found.
func (s *search) ways() ([]Way, error) {
	slices.SortFunc(s.found, func(a, b []change) int {
		return cmp.Or(len(a)-len(b), absent(a)-absent(b), strings.Compare(keyOf(a), keyOf(b)))
	})
	var ways []Way
	for _, changes := range s.found {
		var w Way
		for _, c := range changes {
			if c.kind == suspend {
				w.Exclusions = append(w.Exclusions, Exclusion{Node: c.node, Reasons: s.reasons[c.node]})
				continue
			}
			r, err := s.relation(c)
			if err != nil {
				return nil, err
			}
			w.Relations = append(w.Relations, r)
		}
		slices.SortFunc(w.Relations, func(a, b Relation) int { return a.Tuple.Compare(b.Tuple) })
		slices.SortFunc(w.Exclusions, func(a, b Exclusion) int { return strings.Compare(a.Node.String(), b.Node.String()) })
		ways = append(ways, w)
	}
	return ways, nil
}

// relation describes a tuple that does not hold.
func (s *search) relation(c change) (Relation, error) {
	r := Relation{Tuple: tuplestore.Tuple{Object: c.node.Object, Relation: c.node.Relation, Subject: c.to}, State: Absent}
	v := s.view
	of := v.Find(c.node.Object)
	q := s.qualifier(of, v.Graph.Relations.Known(c.node.Relation), c.to)
	if q == nil {
		return r, nil
	}
	r.Qualifier = q.Clone()
	if v.HasExpired(q) {
		r.State = Expired
		return r, nil
	}
	r.State = Unmet
	if v.Decide(of, q) == view.Undecided {
		r.State = Undecided
	}
	var err error
	r.Values, err = v.Values(of, q)
	return r, err
}

// qualifier returns the qualifier of a tuple: if there are two, a stored and a contextual one,
// that of the latter; nil if the tuple does not exist.
func (s *search) qualifier(of graph.ObjectID, relation graph.RelationID, subject tuplestore.Subject) *tuplestore.Qualifier {
	v := s.view
	to := graph.Plain(v.Find(subject.Object()))
	if of == graph.NoObject || to.Object == graph.NoObject {
		return nil
	}
	if subject.IsUserset() {
		to.Relation = v.Graph.Relations.Known(subject.Relation)
	}
	below, above := v.Edges(of, relation)
	if q := above.Qualifier(to); q != nil {
		return q
	}
	return below.Qualifier(to)
}
