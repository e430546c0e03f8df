package decisions

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"stonetown/engine/internal/eval"
	"stonetown/engine/internal/graph"
	"stonetown/engine/internal/traversal"
	"stonetown/engine/internal/view"
	"stonetown/tuplestore"
)

const (
	// subjectsAtOnce is how many subjects are evaluated together.
	subjectsAtOnce = 256
	// manyPairs is how many pairs of a resource, or of a subject, make it worth to read all
	// subjects of the resource, or all tuples that name the subject.
	manyPairs = 32
)

// evaluate returns the states of pairs, which are in the order of their subjects. Unless
// onlyRegistered, it also evaluates resources that are not registered.
func (f *Follower) evaluate(ctx context.Context, pairs []pair, onlyRegistered bool) ([]State, error) {
	forward, err := f.prepare(ctx, pairs, onlyRegistered)
	if err != nil {
		return nil, err
	}
	states := make([]State, len(pairs))
	for from := 0; from < len(pairs); {
		var questions [][]eval.Question // by subject
		var evaluations []*eval.Evaluation
		i := from
		for ; i < len(pairs); i++ {
			p := pairs[i]
			if onlyRegistered && !f.view.IsRegistered(p.resource) {
				continue
			}
			var open bool
			if states[i], open = f.reached(forward[p.resource], p.subject); !open {
				continue
			}
			last := len(questions) - 1
			if last < 0 || p.subject != pairs[questions[last][0].Query].subject {
				if last++; last == subjectsAtOnce {
					break
				}
				evaluations = append(evaluations, f.evaluation(last, p.subject))
				questions = append(questions, nil)
			}
			q := eval.Question{Query: i, Object: p.resource, Rule: f.rule}
			evaluations[last].Ask(&q)
			questions[last] = append(questions[last], q)
		}
		from = i
		if err := eval.RunTogether(ctx, evaluations, questions); err != nil {
			return nil, err
		}
		for n, e := range evaluations {
			for _, q := range questions[n] {
				if states[q.Query], err = stateOf(e.Answer(q)); err != nil {
					return nil, err
				}
			}
		}
	}
	return states, nil
}

// prepare reads for the evaluation of pairs. It returns the traversals from the resources that
// have many.
func (f *Follower) prepare(ctx context.Context, pairs []pair, onlyRegistered bool) (map[graph.ObjectID]*traversal.Forward, error) {
	v := &f.view
	resources, subjects := map[graph.ObjectID]int{}, map[graph.ObjectID]int{}
	for _, p := range pairs {
		resources[p.resource]++
		subjects[p.subject]++
	}
	for r := range resources {
		v.Reader.WantObject(v.Object(r))
	}
	for s, n := range subjects {
		if n >= manyPairs && s != f.everyone() { // which may be named by any number of tuples
			v.Reader.WantNaming(s)
		}
	}
	if err := v.Reader.Read(ctx, &v.Budget); err != nil {
		return nil, err
	}
	var roots []traversal.Root
	for r, n := range resources {
		if n >= manyPairs && (!onlyRegistered || v.IsRegistered(r)) {
			roots = append(roots, traversal.Root{Object: r, Rule: f.rule})
		}
	}
	if len(roots) > 1 { // which share their reads
		var together traversal.Forward
		if err := together.RunAll(ctx, v, roots, f.question.Kind); err != nil {
			return nil, err
		}
	}
	found := map[graph.ObjectID]*traversal.Forward{}
	for _, root := range roots {
		found[root.Object] = new(traversal.Forward)
		if err := found[root.Object].RunAll(ctx, v, []traversal.Root{root}, f.question.Kind); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// reached returns the state of a subject that follows from a traversal from a resource, if there
// was one. It reports whether the state is open.
func (f *Follower) reached(from *traversal.Forward, subject graph.ObjectID) (s State, open bool) {
	if from == nil {
		return Denied, true
	}
	sure, found := from.Found[subject]
	if sure {
		return Allowed, false
	}
	return Denied, found || from.Everyone
}

// evaluation returns the nth evaluation, about a subject.
func (f *Follower) evaluation(n int, subject graph.ObjectID) *eval.Evaluation {
	if n == len(f.evaluations) {
		f.evaluations = append(f.evaluations, new(eval.Evaluation))
	}
	s := view.Subject{Plain: graph.NoObject, Everyone: f.everyone()}
	switch kind := f.question.Kind; {
	case kind.IsUserset():
		s.IsSet, s.Set = true, graph.Node{Object: subject, Relation: f.view.Graph.Relations.Known(kind.Relation)}
	case subject != s.Everyone:
		s.Plain = subject
	}
	f.evaluations[n].Begin(&f.view, s)
	return f.evaluations[n]
}

func stateOf(allowed bool, err error) (State, error) {
	if _, is := errors.AsType[*view.ConditionError](err); is {
		return Conditional, nil
	}
	if _, is := errors.AsType[*eval.NegativeCycleError](err); is {
		return Undecidable, nil
	}
	if allowed {
		return Allowed, err
	}
	return Denied, err
}

// compare returns what a commit changed for its candidates.
func (f *Follower) compare(candidates []pair, before map[pair]State, after []State) Outcome {
	everyone := f.everyone()
	forAll := map[graph.ObjectID]*Change{} // by resource
	var changes []*Change
	change := func(p pair, after State) *Change {
		c := &Change{Resource: f.view.Object(p.resource), Subject: f.subject(f.view.Object(p.subject)), Before: before[p], After: after}
		changes = append(changes, c)
		return c
	}
	for i, p := range candidates {
		if p.subject == everyone && before[p] != after[i] {
			forAll[p.resource] = change(p, after[i])
		}
	}
	count := len(changes)
	for i, p := range candidates {
		all := forAll[p.resource]
		if p.subject == everyone || all != nil && all.After == after[i] {
			continue
		}
		if all != nil {
			all.Except = append(all.Except, f.subject(f.view.Object(p.subject)))
			count++
		}
		if before[p] != after[i] {
			change(p, after[i])
			count++
		}
	}
	if count > MaxChanges {
		return Outcome{Scope: f.scopeOf(candidates, before, after)}
	}
	slices.SortFunc(changes, func(a, b *Change) int {
		return cmp.Or(strings.Compare(a.Resource.ID, b.Resource.ID), strings.Compare(a.Subject.ID, b.Subject.ID))
	})
	var out Outcome
	for _, c := range changes {
		slices.SortFunc(c.Except, func(a, b tuplestore.Subject) int { return strings.Compare(a.ID, b.ID) })
		out.Changes = append(out.Changes, *c)
	}
	return out
}

// scopeOf returns the scope of changes that are too many.
func (f *Follower) scopeOf(candidates []pair, before map[pair]State, after []State) *Scope {
	resources, subjects := map[graph.ObjectID]bool{}, map[graph.ObjectID]bool{}
	for i, p := range candidates {
		if before[p] != after[i] {
			resources[p.resource], subjects[p.subject] = true, true
		}
	}
	s := new(Scope)
	if len(resources) <= MaxScope {
		s.Resources = f.objects(resources)
	}
	if len(subjects) <= MaxScope && !subjects[f.everyone()] {
		s.Subjects = f.subjects(subjects)
	}
	return s
}
