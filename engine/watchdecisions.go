package engine

import (
	"context"
	"errors"
	"slices"

	"stonetown/engine/internal/decisions"
	"stonetown/engine/internal/names"
	"stonetown/engine/internal/work"
	"stonetown/internal/fair"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// WatchedDecisions are the decisions that a watch is about: an action on all resources of a
// type, for all subjects of a type.
type WatchedDecisions struct {
	Type        string
	Action      string // mapped to a relation as for a check
	SubjectType string // the type group means its members
}

type (
	// DecisionChange is a decision that a commit changed.
	DecisionChange = decisions.Change
	// DecisionState is a decision of a watch. Time does not pass for it: a relation with an
	// expiry holds until the commit that deletes it.
	DecisionState = decisions.State
)

// The states of decisions that are watched.
const (
	DecisionDenied      = decisions.Denied
	DecisionAllowed     = decisions.Allowed
	DecisionConditional = decisions.Conditional
	DecisionUndecidable = decisions.Undecidable
)

// Limits of an event about decisions. A commit that exceeds them has a [DecisionScope].
const (
	MaxDecisionChanges    = decisions.MaxChanges
	MaxDecisionCandidates = decisions.MaxCandidates
	MaxDecisionScope      = decisions.MaxScope
)

// DecisionScope is the scope of changed decisions that are not named.
type DecisionScope struct {
	Reason string // too_many, resource_types
	decisions.Scope
}

const (
	// decisionsAtOnce is the number of commits whose reads are shared.
	decisionsAtOnce = 64
	// maxWatched is the estimated memory, in bytes, that watches of decisions keep together for
	// what they have read. Beyond it, a watch reads for each page of commits again.
	maxWatched = 256 << 20
)

// decisionWatch is the part of a watch that computes decisions.
type decisionWatch struct {
	WatchedDecisions
	watcher  *watcher
	follower *decisions.Follower // nil: the types have no such decisions
	bytes    int64               // the part of Engine.watched
}

// question returns what a follower is asked. The errors are those of [Engine.ListSubjects] about
// types and actions.
func (d WatchedDecisions) question(c *schema.Compiled) (decisions.Question, error) {
	kind, err := checkedSubject(c, tuplestore.Subject{Type: d.SubjectType, ID: "?"})
	if err != nil {
		return decisions.Question{}, err
	}
	if target := resolve(c, d.Type, d.Action); target.err != nil {
		return decisions.Question{}, target.err
	}
	relation, _ := c.ActionRelation(d.Type, d.Action)
	return decisions.Question{Type: d.Type, Relation: relation, Kind: tuplestore.Subject{Type: kind.Type, Relation: kind.Relation}}, nil
}

// watchDecisions prepares a watcher for decisions, which the newest types must have.
func (w *watcher) watchDecisions(now position, about WatchedDecisions) error {
	if _, err := about.question(now.compiled); err != nil {
		return err
	}
	w.decisions = &decisionWatch{WatchedDecisions: about, watcher: w}
	w.decisions.begin()
	return nil
}

// begin begins to follow decisions after the watcher's position.
func (d *decisionWatch) begin() {
	w := d.watcher
	d.follower = nil
	if q, err := d.question(w.types); err == nil {
		d.follower = decisions.New(q, w.types, w.after, d.find)
	}
}

func (d *decisionWatch) find(ctx context.Context, rev tuplestore.Revision, l tuplestore.Lookup) ([]tuplestore.Fact, error) {
	d.watcher.engine.stats.coldReads.Add(1)
	snapshot := d.watcher.engine.snapshot(d.watcher.tenant, position{revision: rev, compiled: d.watcher.types})
	found, err := snapshot.Find(ctx, l)
	return found, expired(err)
}

// send emits an event for each of the commits that changed decisions.
func (d *decisionWatch) send(ctx context.Context, commits []tuplestore.Commit) error {
	w := d.watcher
	for len(commits) > 0 {
		var outcomes []decisions.Outcome
		var err error
		reason := "too_many"
		var renamed []schema.Rename
		switch types := slices.IndexFunc(commits, func(c tuplestore.Commit) bool { return c.Schema != nil }); {
		case types == 0:
			reason = "resource_types"
			outcomes, renamed, err = d.changeTypes(&commits[0])
		case types < 0:
			outcomes, err = d.follow(ctx, commits)
		default:
			outcomes, err = d.follow(ctx, commits[:types])
		}
		if err != nil {
			return err
		}
		for i, of := range outcomes {
			c := &commits[i]
			w.after = c.Revision
			ev := WatchEvent{At: c.At, Actor: c.Actor, Decisions: of.Changes}
			if of.Scope != nil {
				ev.Scope, ev.Renamed = &DecisionScope{reason, *of.Scope}, renamed
			}
			if of.Scope == nil && len(of.Changes) == 0 {
				continue
			}
			if err := w.send(ev); err != nil {
				return err
			}
		}
		commits = commits[len(outcomes):]
		if err := w.beatIfDue(); err != nil {
			return err
		}
	}
	return nil
}

// follow returns the outcomes of the first of some commits, at least one. It is heavy work, for
// which it waits as long as it takes.
func (d *decisionWatch) follow(ctx context.Context, commits []tuplestore.Commit) ([]decisions.Outcome, error) {
	if d.follower == nil {
		return make([]decisions.Outcome, len(commits)), nil
	}
	w := d.watcher
	commits = names.Commits(commits[:min(decisionsAtOnce, len(commits))], w.types)
	for {
		var outcomes []decisions.Outcome
		err := w.engine.attemptHeavy(ctx, w.tenant, func(l work.Limits) (err error) {
			outcomes, err = d.follower.Follow(ctx, l, commits)
			return err
		})
		if err == nil {
			if d.account(d.follower.Bytes()) > maxWatched {
				d.follower.Reset()
				d.account(0)
			}
			return outcomes, nil
		}
		var budget *BudgetError
		var busy *fair.ExhaustedError
		switch {
		case errors.As(err, &busy):
			if err := w.wait(ctx); err != nil {
				return nil, err
			}
			if err := w.beatIfDue(); err != nil {
				return nil, err
			}
		case !errors.As(err, &budget):
			return nil, err
		case len(commits) > 1: // each commit has a budget, if need be
			d.follower.Reset()
			commits = commits[:len(commits)/2]
		default:
			known := d.follower.Known()
			d.follower.Skip(commits[0].Revision)
			return []decisions.Outcome{{Scope: &known}}, nil
		}
	}
}

// account sets the memory of the watch, and returns that of all watches.
func (d *decisionWatch) account(bytes int64) (all int64) {
	all = d.watcher.engine.watched.Add(bytes - d.bytes)
	d.bytes = bytes
	return all
}

// changeTypes returns the outcome of a commit that changed the types, and what it renamed.
func (d *decisionWatch) changeTypes(c *tuplestore.Commit) ([]decisions.Outcome, []schema.Rename, error) {
	after, err := compileDocument(c.Schema)
	if err != nil {
		return nil, nil, err
	}
	outcome := decisions.Outcome{}
	renamed := schema.Renamed(d.watcher.types.Types, after.Types)
	if d.mayDiffer(after, renamed, len(c.Changes) > 0) {
		outcome.Scope = new(decisions.Scope)
	}
	d.watcher.after, d.watcher.types = c.Revision, after
	d.begin()
	return []decisions.Outcome{outcome}, renamed, nil
}

// mayDiffer reports whether decisions may change with the types, and with relations if these
// change with them.
func (d *decisionWatch) mayDiffer(after *schema.Compiled, renamed []schema.Rename, relations bool) bool {
	types := d.watcher.types
	was, err := d.question(types)
	is, errAfter := d.question(after)
	switch {
	case err != nil && errAfter != nil:
		return false
	case err != nil || errAfter != nil || relations:
		return true
	}
	// Renames alone change no decision, but they can change what the question is about.
	if len(renamed) > 0 {
		renaming, err := types.Rename(renamed)
		if err != nil { // it depends on other parts of the change
			return true
		}
		if types, err = schema.Compile(renaming.Types); err != nil {
			return true
		}
		n := &renaming.Names
		was.Type, was.Relation, was.Kind = n.Type(was.Type), n.Relation(was.Type, was.Relation), names.Subject(n, was.Kind)
	}
	return was != is || slices.Contains(schema.Affected(types, after), schema.RelationName{Type: is.Type, Relation: is.Relation})
}
