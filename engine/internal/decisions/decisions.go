// Package decisions computes from the changelog of a tenant which decisions each commit changed:
// for the resources of one type and one action, which subjects gained it and which lost it.
//
// The definition is a comparison of all decisions before the commit with all decisions after
// it. The computation makes that affordable in two steps.
//
// # Candidates
//
// The first step finds pairs of a resource and a subject, among which are all whose decision
// differs. It works on the tuples before the commit together with those that the commit created,
// so that it sees all that holds on either side.
//
// A decision about a resource depends on the tuples that a traversal from it reaches, through
// every operand of intersections and exclusions. Backward, the resources that a changed tuple
// can affect are therefore the sets that lead to its relation, what is subtracted included
// ([traversal.Reverse.RunDependents]).
//
// For one subject, the sets that contain it are the model of a logic program, whose rules are
// the tuples and rewrites. To add or remove a rule whose body is false in the model does not
// change the model, be it below an intersection or an exclusion. A tuple with a userset, or a
// link of an arrow, is such a rule; its body is that the subject is in the set named. So only
// subjects that may be in that set are affected: those that a traversal forward from it finds
// ([traversal.Forward.RunAll]), in the tuples of both sides. A tuple with a plain subject
// affects that subject, and one with a wildcard all subjects. The exception is an intersection
// arrow, whose body has all links together: to remove one can make it true, and to add one can
// make it false. Its body is false for subjects in none of the linked sets, so the traversal
// begins at all links.
//
// A change that can affect all subjects is judged for the wildcard, which stands for every
// subject that no tuple names, and for the subjects that a traversal forward from the resource
// finds. All others have the decision of the wildcard, before and after.
//
// # Evaluation
//
// The second step evaluates the candidates after the commit. Before it, a candidate has the
// state that the last commit left it with, so that only the first commit of a page needs an
// evaluation of its own.
//
// All of it takes place on one partial graph, which has the tuples that have been read so far and
// moves with the changelog. What a page of commits needs is read at the revision before the page,
// level by level for all its commits together, and stays for the pages that follow. There is no
// lock: nothing is shared with writes or with the tenant's resident graph.
//
// # Instant
//
// Time does not pass: a tuple with an expiry holds until the commit that removes it. Otherwise
// decisions would change between commits, and not be a function of the revision, with which a
// watch could be resumed. Conditions have no values but those stored with a tuple.
package decisions

import (
	"cmp"
	"context"
	"slices"
	"time"

	"stonetown/engine/internal/eval"
	"stonetown/engine/internal/graph"
	"stonetown/engine/internal/program"
	"stonetown/engine/internal/view"
	"stonetown/engine/internal/work"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// Limits of one commit. What exceeds them is reported as a [Scope].
const (
	MaxChanges    = 1000 // changed decisions, with the subjects that they except
	MaxCandidates = 2000 // pairs of a resource and a subject that are evaluated
	MaxScope      = 100  // resources, or subjects, that a scope names
)

// maxKept is how much memory a partial graph may take, estimated in bytes, before another one is
// begun.
const maxKept = 32 << 20

// Question is what a watch asks of all resources of a type and all subjects of a kind.
type Question struct {
	Type     string
	Relation string             // of the type
	Kind     tuplestore.Subject // its Type and Relation
}

// State is a decision.
type State uint8

const (
	Denied State = iota // also of a resource that is not registered
	Allowed
	Conditional // depends on values that are not stored
	Undecidable // depends on its own negation
)

// Change is a decision that a commit changed. If the subject is a wildcard, it says what every
// subject of the type may do after the commit, except some.
type Change struct {
	Resource      tuplestore.Object
	Subject       tuplestore.Subject
	Before, After State
	// Except are the subjects with another decision after the commit than the wildcard. Those
	// for which it changed have a change of their own.
	Except []tuplestore.Subject
}

// Scope is what the decisions that a commit changed have in common, if these are too many to be
// named.
type Scope struct {
	// Each decision is about one of these resources and one of these subjects; nil: not known, or
	// too many.
	Resources []tuplestore.Object
	Subjects  []tuplestore.Subject
}

// Outcome is what a commit changed.
type Outcome struct {
	Changes []Change
	Scope   *Scope // not nil: Changes are not known
}

// Find reads tuples at a revision.
type Find func(ctx context.Context, rev tuplestore.Revision, l tuplestore.Lookup) ([]tuplestore.Fact, error)

// Follower computes the outcomes of consecutive commits between two changes of the types. It is
// not safe for concurrent use.
type Follower struct {
	question Question
	compiled *schema.Compiled
	find     Find
	at       tuplestore.Revision // of the graph

	view   view.View
	target program.TypeRelation
	rule   int32
	read   int64 // estimated size in bytes of the tables of the view's reader
	known  Scope // of the commit that is in progress

	evaluations []*eval.Evaluation
}

// New returns a follower of the commits after a revision, of which it has the types. The relation
// and the kind of the question exist there.
func New(q Question, c *schema.Compiled, at tuplestore.Revision, find Find) *Follower {
	f := &Follower{question: q, compiled: c, at: at, find: find}
	f.Reset()
	return f
}

// Known returns what is known about the scope of the first commit for which Follow failed.
func (f *Follower) Known() Scope { return f.known }

// Revision returns the revision up to which commits have been followed.
func (f *Follower) Revision() tuplestore.Revision { return f.at }

// Skip moves to a revision without following the commits before it.
func (f *Follower) Skip(to tuplestore.Revision) {
	f.at = to
	f.Reset()
}

// Reset forgets all tuples.
func (f *Follower) Reset() {
	g := graph.New()
	g.KeepObjects() // the reader's tables have their numbers
	g.IndexBackward()
	f.view = view.View{Graph: g, Program: program.New(f.compiled, g)}
	f.read = 0
	f.view.Reader = view.NewReader(g, f.view.Program, func(ctx context.Context, l tuplestore.Lookup) ([]tuplestore.Fact, error) {
		f.read += lookupBytes * int64(len(l.Tuples)+len(l.Usersets)+len(l.All)+len(l.Naming))
		return f.find(ctx, f.at, l)
	})
	f.target = program.TypeRelation{Type: g.Types.Known(f.question.Type), Relation: g.Relations.Known(f.question.Relation)}
	f.rule = f.view.Program.Rule(f.target.Type, f.target.Relation)
	if kind := f.question.Kind; !kind.IsUserset() {
		f.view.Reader.About(tuplestore.Subject{Type: kind.Type, ID: tuplestore.Wildcard})
	}
}

// Bytes returns the estimated size of the tuples in memory, and of the tables about them.
func (f *Follower) Bytes() int64 { return f.view.Graph.Bytes() + f.read }

// lookupBytes is the estimated size of a lookup in the tables of a reader.
const lookupBytes = 64

// beforeAllExpiry is the instant of all decisions.
func beforeAllExpiry() time.Time { return time.UnixMicro(0) }

// Follow returns the outcomes of the first of the commits, at least one, which continue where the
// last call ended. If it fails, the follower has to be reset, and is still before the commits.
func (f *Follower) Follow(ctx context.Context, l work.Limits, commits []tuplestore.Commit) ([]Outcome, error) {
	began := f.at
	f.view.Start(ctx, l, beforeAllExpiry, nil)
	outcomes, err := f.follow(ctx, commits)
	if err != nil {
		f.at = began
		return nil, err
	}
	if f.Bytes() > maxKept {
		f.Reset()
	}
	return outcomes, nil
}

func (f *Follower) follow(ctx context.Context, commits []tuplestore.Commit) ([]Outcome, error) {
	candidates, err := f.candidates(ctx, commits)
	if err != nil {
		return nil, err
	}
	if len(candidates) == 0 { // the first commit has too many
		f.view.Overlay = nil
		scope := f.known
		f.apply(&commits[0])
		return []Outcome{{Scope: &scope}}, nil
	}
	states, err := f.statesBefore(ctx, candidates)
	if err != nil {
		return nil, err
	}
	outcomes := make([]Outcome, len(candidates))
	for i, of := range candidates {
		f.apply(&commits[i])
		if len(of) == 0 {
			continue
		}
		after, err := f.evaluate(ctx, of, true)
		if err != nil {
			return nil, err
		}
		outcomes[i] = f.compare(of, states, after)
		for j, p := range of {
			states[p] = after[j]
		}
	}
	return outcomes, nil
}

func (f *Follower) apply(c *tuplestore.Commit) {
	for _, change := range c.Changes {
		f.view.Graph.Apply(change)
	}
	f.at = c.Revision
}

// pair is a resource and a subject, both by number. A subject that is a userset has the relation
// of the question's kind.
type pair struct{ resource, subject graph.ObjectID }

// comparePairs orders pairs by subject.
func comparePairs(a, b pair) int {
	return cmp.Or(cmp.Compare(a.subject, b.subject), cmp.Compare(a.resource, b.resource))
}

// statesBefore evaluates all candidates before the first commit.
func (f *Follower) statesBefore(ctx context.Context, candidates [][]pair) (map[pair]State, error) {
	states := map[pair]State{}
	var all []pair
	for _, of := range candidates {
		for _, p := range of {
			if _, known := states[p]; !known {
				states[p] = Denied
				all = append(all, p)
			}
		}
	}
	slices.SortFunc(all, comparePairs)
	// First with the tuples that the commits create and for all resources, which reads nearly all
	// that the later evaluations need.
	if _, err := f.evaluate(ctx, all, false); err != nil {
		return nil, err
	}
	f.view.Overlay = nil
	found, err := f.evaluate(ctx, all, true)
	if err != nil {
		return nil, err
	}
	for i, p := range all {
		states[p] = found[i]
	}
	return states, nil
}
