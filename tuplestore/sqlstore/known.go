package sqlstore

import (
	"context"
	"errors"
	"math"

	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
	"stonetown/tuplestore/internal/apply"
)

// A group of writes takes two round trips to a server: one locks the head and reads the tuples that
// decide the writes, the other writes and commits. It takes one if the process knows these tuples:
//
//	lock and move the head   guard   write   commit
//
// The callers know which of them existed at earlier revisions ([tuplestore.Known]), and the commits
// since then were made by this process, so the group is decided on the state after its newest
// commit, the tip. The head moves only from there. If another process has written, it does not move,
// and the guard fails: it divides by zero. The group then starts over, and reads.
//
// If the connection breaks, the server may run the transaction later. It fails if another attempt
// has committed, because the head has moved.

// errNoChange: a group changes nothing, so no commit shows whether it was decided on the newest
// state.
var errNoChange = errors.New("the group changes nothing")

// known returns the tip of a tenant, and which of the tuples exist there that decide a group; false
// if that is not known.
func (r *recent) known(tenant string, group []*request) (at tip, facts []tuplestore.Fact, ok bool) {
	oldest := tuplestore.Revision(math.MaxInt64)
	for _, req := range group {
		w := &req.write
		// A write with an ID may have been applied before.
		if w.Known == nil || w.CommitID != "" || w.Known.Epoch != group[0].write.Known.Epoch || !w.DependsOnTuples() {
			return tip{}, nil, false
		}
		oldest = min(oldest, w.Known.Revision)
	}
	at, commits, ok := r.since(tenant, oldest)
	if !ok || at.head.Epoch != group[0].write.Known.Epoch {
		return tip{}, nil, false
	}
	for _, req := range group {
		behind := int(at.head.Revision - req.write.Known.Revision) // commits
		if behind < 0 {
			return tip{}, nil, false
		}
		facts = append(facts, forward(&req.write, commits[len(commits)-behind:])...)
	}
	return at, facts, true
}

// since returns the tip of a tenant and the commits after a revision; false if they are not all
// kept, or if what is known of the tenant is not used.
func (r *recent) since(tenant string, rev tuplestore.Revision) (tip, []tuplestore.Commit, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	t := r.tenants[tenant]
	if t == nil || t.left > 0 || t.tip.head.Revision < rev {
		return tip{}, nil, false
	}
	commits, ok := t.since(rev)
	return t.tip, commits, ok
}

// forward returns which tuples of the ops of a write exist after commits that it does not know.
func forward(w *tuplestore.Write, commits []tuplestore.Commit) []tuplestore.Fact {
	if len(commits) == 0 {
		return w.Known.Facts
	}
	isConcerned := make(map[tuplestore.Tuple]bool, len(w.Ops))
	for i := range w.Ops {
		isConcerned[w.Ops[i].Tuple] = true
	}
	changed := make(map[tuplestore.Tuple]tuplestore.Change)
	for i := range commits {
		for _, c := range commits[i].Changes {
			if isConcerned[c.Tuple] {
				changed[c.Tuple] = c
			}
		}
	}
	if len(changed) == 0 {
		return w.Known.Facts
	}
	var facts []tuplestore.Fact
	for _, f := range w.Known.Facts {
		if _, ok := changed[f.Tuple]; !ok {
			facts = append(facts, f)
		}
	}
	for _, c := range changed {
		if !c.Deleted {
			facts = append(facts, tuplestore.Fact{Tuple: c.Tuple, Qualifier: c.Qualifier})
		}
	}
	return facts
}

// pauseKnown ends the use of what is known of a tenant, for some groups: another process has
// written to it.
func (r *recent) pauseKnown(tenant string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.tenants[tenant]; t != nil {
		t.pause = min(max(2*t.pause, shortestPause), longestPause)
		t.left = t.pause
	}
}

// attemptKnown is [Store.attempt] of a group whose tuples are known at a tip. It fails with
// [errOvertaken] if that is not the state of the tenant, and with [errNoChange].
func (s *Store) attemptKnown(l *tenantQueue, group []*request, before tip, facts []tuplestore.Fact, told *revocations) (_ []outcome, err error) {
	a, end := s.newAttempt(context.Background(), l.tenant, group)
	defer func() { end(err) }()
	a.head, a.commitEvents, a.committedAt = &before.head, before.commitEvents, before.committedAt
	a.view = apply.NewView(before.head)
	a.view.Add(facts...)
	if err := a.decide(); err != nil {
		return nil, err
	}
	if len(a.effects.commits) == 0 {
		return nil, errNoChange
	}
	if s.DB.Dialect() == sqldb.SQLite || a.effects.copied(s.DB.Dialect()) {
		err = a.lockAt(before)
	} else {
		a.from = &before
		a.tx, err = s.DB.Pipeline(a.ctx, nil)
	}
	if err != nil {
		return nil, err
	}
	defer a.tx.Rollback()
	if err = a.copy(); err != nil {
		return nil, err
	}
	err = a.commit(told)
	switch {
	case err == nil:
		s.asKnown.Add(1)
	case sqldb.IsDivisionByZero(err):
		err = errOvertaken
	}
	return a.outcomes, err
}
