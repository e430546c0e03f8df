// Package proof lists the proofs of a check that is allowed.
//
// A proof is a derivation of the decision: of each union one alternative, of each
// intersection all operands, of an intersection arrow all linked objects, and of an exclusion
// the base. A set that occurs several times in a proof is derived once, and no derivation
// leads back to itself, so the number of proofs is finite. It can be exponential, so a
// search is depth first, keeps nothing but its position, and can be continued from there.
//
// The search follows only sets that contain the subject, by the evaluation that answers
// checks. What a proof must not depend on, such as the subtracted side of an exclusion or a
// condition that cannot be decided, is decided in the same way.
package proof

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"stonetown/engine/internal/eval"
	"stonetown/engine/internal/graph"
	"stonetown/engine/internal/program"
	"stonetown/engine/internal/view"
	"stonetown/engine/internal/work"
	"stonetown/tuplestore"
)

// MaxSets is the number of sets that a proof may derive. Longer proofs are left out.
const MaxSets = 1000

// Proof is one proof of a check.
type Proof struct {
	Reasons []eval.Reason
	// Until is when the first of its relations expires; zero if none does.
	Until time.Time
}

// Position is a place in the search: the index of the alternative that is taken in each set
// on the way to it. It is valid for the same question at the same revision.
type Position []int

// Page is a part of the proofs.
type Page struct {
	Proofs []Proof
	// Next is where the search continues; nil if there are no more proofs.
	Next Position
	// Truncated: a proof of more than [MaxSets] sets was left out.
	Truncated bool
}

// Find returns at most limit proofs that a set contains a subject, which it does, from a
// position on (nil: from the first). If the budget of the view is used up, the page ends early; it fails with
// [*work.BudgetError] only if the search did not move.
func Find(ctx context.Context, v *view.View, s view.Subject, object graph.ObjectID, rule int32, from Position, limit int) (*Page, error) {
	p := search{
		ctx: ctx, view: v, subject: s, from: from, resume: from, limit: limit,
		known: map[goal]verdict{}, expanded: map[goal][]alternative{}, states: map[goal]state{},
	}
	p.evaluation.Begin(v, s)
	p.prove(goal{object: object, index: rule}, p.emit)
	var exhausted *work.BudgetError
	if errors.As(p.err, &exhausted) && (len(p.page.Proofs) > 0 || slices.Compare(p.page.Next, from) > 0) {
		p.err = nil
	}
	return &p.page, p.err
}

// goal is a set to be derived: that of a rule, or of logic, for an object.
type goal struct {
	object  graph.ObjectID
	index   int32 // of the rule or the logic
	isLogic bool
}

type state uint8

const (
	underway state = iota + 1 // its derivation is not complete
	derived                   // by the proof so far
)

// verdict is whether a set contains the subject. Neither is true if that depends on
// conditions that cannot be decided, or on its own negation.
type verdict struct{ holds, fails bool }

type search struct {
	ctx        context.Context
	view       *view.View
	subject    view.Subject
	evaluation eval.Evaluation
	known      map[goal]verdict // of rules
	expanded   map[goal][]alternative
	from       Position
	resume     Position // the part of from that is ahead
	limit      int

	// The proof so far.
	states     map[goal]state
	choices    Position
	reasons    []eval.Reason
	qualifiers []*tuplestore.Qualifier

	page Page
	err  error
}

// emit adds the proof so far to the page. It reports whether the search goes on.
func (p *search) emit() bool {
	if len(p.page.Proofs) == p.limit {
		p.page.Next = slices.Clone(p.choices)
		return false
	}
	p.view.Budget.Spend(work.StepsToShow * len(p.reasons))
	proof := Proof{Reasons: slices.Clone(p.reasons)}
	for _, q := range p.qualifiers {
		proof.Until = eval.Earliest(proof.Until, q)
	}
	p.page.Proofs = append(p.page.Proofs, proof)
	return true
}

// end ends the search, with an error or without one, where it is.
func (p *search) end(err error) bool {
	p.err = err
	p.page.Next = slices.Clone(p.choices)
	return false
}

// prove extends the proof by each derivation of a goal in turn, and continues with then. It
// reports whether the search goes on.
func (p *search) prove(g goal, then func() bool) bool {
	switch p.states[g] {
	case underway:
		return true // a derivation that leads to itself proves nothing
	case derived:
		return then()
	}
	if len(p.choices) == MaxSets {
		p.page.Truncated = true
		return true
	}
	p.view.Budget.Step()
	if err := p.view.Budget.Err(); err != nil {
		return p.end(err)
	}
	alternatives, err := p.alternatives(g)
	if err != nil {
		return p.end(err)
	}
	start := 0
	if len(p.resume) > 0 {
		start, p.resume = p.resume[0], p.resume[1:]
	}
	p.states[g] = underway
	defer delete(p.states, g)
	for _, a := range alternatives {
		if a.index < start {
			continue
		}
		if a.index > start {
			p.resume = nil // the position is in an alternative that holds no longer, or is passed
		}
		reasons, qualifiers := len(p.reasons), len(p.qualifiers)
		p.choices = append(p.choices, a.index)
		p.reasons = append(p.reasons, a.reasons...)
		p.qualifiers = append(p.qualifiers, a.qualifiers...)
		goesOn := p.proveAll(a.needs, func() bool {
			p.states[g] = derived
			defer func() { p.states[g] = underway }()
			return then()
		})
		if !goesOn {
			return false
		}
		p.resume = nil
		p.choices = p.choices[:len(p.choices)-1]
		p.reasons, p.qualifiers = p.reasons[:reasons], p.qualifiers[:qualifiers]
	}
	return true
}

// proveAll extends the proof by derivations of all goals.
func (p *search) proveAll(goals []goal, then func() bool) bool {
	if len(goals) == 0 {
		return then()
	}
	return p.prove(goals[0], func() bool { return p.proveAll(goals[1:], then) })
}

// alternative is a way to derive a goal.
type alternative struct {
	index      int // among all alternatives, also those that do not hold at this instant
	reasons    []eval.Reason
	qualifiers []*tuplestore.Qualifier
	needs      []goal
}

// alternatives returns the ways to derive a goal, in an order that depends only on names.
func (p *search) alternatives(g goal) ([]alternative, error) {
	if known, ok := p.expanded[g]; ok {
		return known, nil
	}
	list := p.ofRule
	if g.isLogic {
		list = p.ofLogic
	}
	found, err := list(g)
	if err != nil {
		return nil, err
	}
	p.expanded[g] = found
	return found, nil
}

// ofRule returns the alternatives of a rule's set, which is a union.
func (p *search) ofRule(g goal) ([]alternative, error) {
	v := p.view
	r := &v.Program.Rules[g.index]
	if err := p.read(g, r); err != nil {
		return nil, err
	}
	c := candidates{search: p, object: v.Object(g.object), of: g.object, relation: v.Graph.Relations.Name(r.Relation)}
	if p.subject.IsSet && g.object == p.subject.Set.Object && slices.Contains(r.Includes, p.subject.Set.Relation) {
		n := c.node(p.subject.Set.Relation)
		c.add(alternative{reasons: append(c.implied(n.Relation), eval.IdentityReason(n))}, true)
	}
	if r.Self && g.object == p.subject.Plain {
		c.add(alternative{reasons: []eval.Reason{eval.SelfReason(c.node(r.Relation))}}, true)
	}
	for _, relation := range r.Direct {
		if err := c.addTuples(relation); err != nil {
			return nil, err
		}
	}
	for _, a := range r.Arrows {
		if err := c.addArrow(a); err != nil {
			return nil, err
		}
	}
	for _, id := range r.Logic {
		lg := goal{object: g.object, index: id, isLogic: true}
		needs := p.operands(lg)
		if err := p.evaluate(needs); err != nil {
			return nil, err
		}
		name := v.Graph.Relations.Name(v.Program.Logic[id].Relation)
		c.add(alternative{reasons: c.implied(name), needs: []goal{lg}}, true)
	}
	return c.list, v.Budget.Err()
}

// read reads the tuples that a rule's set depends on.
func (p *search) read(g goal, r *program.Rule) error {
	reader := p.view.Reader
	if reader == nil {
		return nil
	}
	for _, a := range r.Arrows {
		reader.WantAll(g.object, a.Tupleset)
	}
	for _, id := range r.Logic {
		if lg := &p.view.Program.Logic[id]; lg.IsArrow() {
			reader.WantAll(g.object, lg.Arrow.Tupleset)
		}
	}
	for _, relation := range r.Direct {
		reader.Want(g.object, relation, p.subject)
	}
	p.view.Budget.Spend(work.StepsToAsk)
	return reader.Read(p.ctx, &p.view.Budget)
}

// evaluate decides rules of objects that are not decided yet, all at once.
func (p *search) evaluate(goals []goal) error {
	p.evaluation.Reset()
	var asked []goal
	var questions []eval.Question
	for _, g := range goals {
		if _, known := p.known[g]; known || g.isLogic {
			continue
		}
		p.known[g] = verdict{}
		q := eval.Question{Query: len(asked), Object: g.object, Rule: g.index}
		p.evaluation.Ask(&q)
		asked, questions = append(asked, g), append(questions, q)
	}
	if len(asked) == 0 {
		return nil
	}
	if err := p.evaluation.Run(p.ctx, questions); err != nil {
		return err
	}
	for i, q := range questions {
		holds, err := p.evaluation.Answer(q)
		p.known[asked[i]] = verdict{holds: holds, fails: !holds && err == nil}
	}
	return nil
}

// operands are the sets that logic is decided by: of an intersection arrow those of the
// linked objects, unless their type has no such relation.
func (p *search) operands(g goal) []goal {
	lg := &p.view.Program.Logic[g.index]
	var needs []goal
	if !lg.IsArrow() {
		for _, operand := range lg.Operands {
			needs = append(needs, goal{object: g.object, index: operand})
		}
		return needs
	}
	for _, l := range p.links(g.object, lg.Arrow.Tupleset) {
		if child := p.view.Program.Rule(p.view.Type(l.to.Object), lg.Arrow.Computed); child != program.NoRule {
			needs = append(needs, goal{object: l.to.Object, index: child})
		}
	}
	return needs
}

// ofLogic returns the only way to derive logic, or none. Its operands are decided.
func (p *search) ofLogic(g goal) ([]alternative, error) {
	v := p.view
	lg := &v.Program.Logic[g.index]
	name := v.Graph.Relations.Name
	n := tuplestore.Node{Object: v.Object(g.object), Relation: name(lg.Relation)}
	var a alternative
	switch {
	case lg.IsArrow():
		sure := false
		for _, l := range p.links(g.object, lg.Arrow.Tupleset) {
			outcome := v.Decide(g.object, l.q)
			if outcome == view.Unmet {
				continue
			}
			child := v.Program.Rule(v.Type(l.to.Object), lg.Arrow.Computed)
			linked := goal{object: l.to.Object, index: child}
			if child == program.NoRule || !p.known[linked].holds {
				return nil, nil
			}
			sure = sure || outcome == view.Met
			a.qualifiers = append(a.qualifiers, l.q)
			a.needs = append(a.needs, linked)
		}
		if !sure {
			return nil, nil
		}
		tupleset := tuplestore.Node{Object: n.Object, Relation: name(lg.Arrow.Tupleset)}
		a.reasons = []eval.Reason{eval.EveryLinkReason(tupleset, name(lg.Arrow.Computed), n.Relation)}
	case lg.IsExclusion():
		base, subtracted := goal{object: g.object, index: lg.Operands[0]}, goal{object: g.object, index: lg.Operands[1]}
		if !p.known[base].holds || !p.known[subtracted].fails {
			return nil, nil
		}
		a.reasons, a.needs = []eval.Reason{eval.ExclusionReason(n)}, []goal{base}
	default:
		for _, operand := range p.operands(g) {
			if !p.known[operand].holds {
				return nil, nil
			}
			a.needs = append(a.needs, operand)
		}
		a.reasons = []eval.Reason{eval.IntersectionReason(n)}
	}
	return []alternative{a}, nil
}

// candidates are the alternatives of a rule's set.
type candidates struct {
	*search
	of       graph.ObjectID
	object   tuplestore.Object
	relation string // of the rule
	next     int    // the index of the next alternative
	list     []alternative
}

// add adds an alternative if it holds. It counts in either case.
func (c *candidates) add(a alternative, holds bool) {
	c.view.Budget.Step()
	a.index = c.next
	c.next++
	if holds {
		c.view.Budget.Spend(work.StepsToShow)
		c.list = append(c.list, a)
	}
}

func (c *candidates) node(relation graph.RelationID) tuplestore.Node {
	return tuplestore.Node{Object: c.object, Relation: c.view.Graph.Relations.Name(relation)}
}

// implied returns the step from another relation of the object to that of the rule, if they
// differ.
func (c *candidates) implied(from string) []eval.Reason {
	if from == c.relation {
		return nil
	}
	return []eval.Reason{eval.ComputedReason(tuplestore.Node{Object: c.object, Relation: from}, c.relation)}
}

// tuple returns a tuple of the object.
func (c *candidates) tuple(relation graph.RelationID, to graph.Subject) tuplestore.Tuple {
	o := c.view.Object(to.Object)
	s := tuplestore.Subject{Type: o.Type, ID: o.ID}
	if to.IsUserset() {
		s.Relation = c.view.Graph.Relations.Name(to.Relation)
	}
	return tuplestore.Tuple{Object: c.object, Relation: c.view.Graph.Relations.Name(relation), Subject: s}
}

// addTuples adds the tuples of a relation that name the subject, or a userset that contains
// it.
func (c *candidates) addTuples(relation graph.RelationID) error {
	v := c.view
	for _, plain := range [2]graph.ObjectID{c.subject.Plain, c.subject.Everyone} {
		if plain == graph.NoObject {
			continue
		}
		to, held := graph.Plain(plain), false
		below, above := v.Edges(c.of, relation)
		for _, found := range [2]graph.Edges{below, above} { // which may have the same tuple
			q := found.Qualifier(to)
			if q == nil && !found.Has(plain) {
				continue
			}
			t := c.tuple(relation, to)
			holds := !held && v.Decide(c.of, q) == view.Met
			held = held || holds
			c.add(alternative{
				reasons: append(c.implied(t.Relation), eval.TupleReason(t, q)), qualifiers: []*tuplestore.Qualifier{q},
			}, holds)
		}
	}
	usersets := c.usersets(c.of, relation)
	return c.addSteps(usersets, func(l link) int32 { return v.Program.Rule(v.Type(l.to.Object), l.to.Relation) }, func(l link) []eval.Reason {
		t := c.tuple(relation, l.to)
		return append(c.implied(t.Relation), eval.UsersetReason(t, l.q))
	})
}

// addArrow adds the links of an arrow to objects whose relation contains the subject.
func (c *candidates) addArrow(a program.Arrow) error {
	v := c.view
	links := c.links(c.of, a.Tupleset)
	return c.addSteps(links, func(l link) int32 { return v.Program.Rule(v.Type(l.to.Object), a.Computed) }, func(l link) []eval.Reason {
		t := c.tuple(a.Tupleset, l.to)
		return []eval.Reason{eval.ArrowReason(t, l.q, v.Graph.Relations.Name(a.Computed), c.relation)}
	})
}

// addSteps adds the tuples that lead to another set which contains the subject.
func (c *candidates) addSteps(links []link, rule func(link) int32, reasons func(link) []eval.Reason) error {
	v := c.view
	children := make([]goal, len(links))
	var asked []goal
	for i, l := range links {
		children[i] = goal{object: l.to.Object, index: rule(l)}
		if children[i].index != program.NoRule {
			asked = append(asked, children[i])
		}
	}
	if err := c.evaluate(asked); err != nil {
		return err
	}
	held := -1 // the last link that holds
	for i, l := range links {
		again := held >= 0 && links[held].to == l.to // stored and contextual
		if again || !c.known[children[i]].holds || v.Decide(c.of, l.q) != view.Met {
			c.add(alternative{}, false)
			continue
		}
		held = i
		c.add(alternative{reasons: reasons(l), qualifiers: []*tuplestore.Qualifier{l.q}, needs: []goal{children[i]}}, true)
	}
	return v.Budget.Err()
}

// link is a tuple that leads to another set.
type link struct {
	to graph.Subject
	q  *tuplestore.Qualifier
}

// usersets returns the tuples of a relation of an object whose subject is a userset.
func (p *search) usersets(of graph.ObjectID, relation graph.RelationID) []link {
	var list []link
	below, above := p.view.Edges(of, relation)
	for _, found := range [2]graph.Edges{below, above} {
		for _, set := range found.Usersets() {
			list = append(list, link{to: graph.Subject(set)})
		}
		for to, q := range found.Qualified() {
			p.view.Budget.Step()
			if to.IsUserset() {
				list = append(list, link{to, q})
			}
		}
		p.view.Budget.Spend(len(list))
	}
	return p.sorted(list)
}

// links returns the tuples of a tupleset of an object.
func (p *search) links(of graph.ObjectID, tupleset graph.RelationID) []link {
	var list []link
	below, above := p.view.Edges(of, tupleset)
	for _, found := range [2]graph.Edges{below, above} {
		for to, q := range found.Subjects() {
			if p.view.Budget.Step(); p.view.Budget.Err() != nil {
				break
			}
			list = append(list, link{to, q})
		}
	}
	return p.sorted(list)
}

// sorted sorts links by name. Of a stored and a contextual tuple of one name, the stored one
// is first.
func (p *search) sorted(list []link) []link {
	v := p.view
	slices.SortStableFunc(list, func(a, b link) int {
		x, y := v.Object(a.to.Object), v.Object(b.to.Object)
		return cmp.Or(strings.Compare(x.Type, y.Type), strings.Compare(x.ID, y.ID), strings.Compare(p.relationOf(a.to), p.relationOf(b.to)))
	})
	return list
}

func (p *search) relationOf(s graph.Subject) string {
	if !s.IsUserset() {
		return ""
	}
	return p.view.Graph.Relations.Name(s.Relation)
}
