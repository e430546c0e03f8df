package sqlstore

import (
	"context"
	"errors"
	"iter"
	"slices"

	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
	"stonetown/tuplestore/internal/apply"
)

// Bulk loads are prepared ahead: while one commits, the next are read, decided and, on PostgreSQL,
// copied, each in a transaction of its own that does not have the lock of the tenant yet.
//
//	load 1   lock, read, decide   copy            commit
//	load 2                        read, decide    copy            lock   commit
//	load 3                                        read, decide    copy          lock   commit
//
// Load 2 is decided on the plan of load 1: the head after it, and the tuples that it creates. When
// load 2 gets the lock, the head must be that one. Otherwise load 1 has failed, or another process
// has written; then what was prepared is rolled back, and the load starts over with the lock.
//
// The database cannot see that load 3 waits for load 2, so no other transaction may wait for a row
// of load 3 while load 2 waits for it. A load that would create a tuple of one before it is not
// prepared, and load 2 does not wait for the lock: if it is taken, another process writes.

// maxAhead is the number of loads of all tenants that are prepared and that no committer has. Each
// has a connection and the memory of its tuples.
const maxAhead = 2

// plan is the state of a tenant after a load that is decided.
type plan struct {
	tip
	created []version // by this load, in primary-key order
}

// ahead is a load that is prepared while others commit.
type ahead struct {
	request *request
	after   []*plan // of the loads before it that are not committed; not empty

	ctx     context.Context
	cancel  context.CancelFunc
	dropped bool          // guarded by Store.mu
	done    chan struct{} // closed when the rest is set
	attempt *attempt      // nil with an error
	end     func(error)
	err     error
}

// errOvertaken: a load was prepared for a state that is not the one before it.
var errOvertaken = errors.New("prepared for another state of the tenant")

// plan makes the state after an attempt known, so that the next load can be prepared on it. The
// attempt must have one write only, with its outcome.
func (s *Store) plan(l *tenantQueue, a *attempt) {
	if p := a.planned(); p != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		l.planned = append(l.planned, p)
		s.prepareNext(l)
	}
}

// planned returns the state after an attempt, or nil if it does more than to create tuples.
func (a *attempt) planned() *plan {
	e := &a.effects
	if a.outcomes[0].err != nil || len(e.commits) != 1 || len(e.deleted)+len(e.transient)+len(e.schemas) > 0 || e.others {
		return nil
	}
	e.sort()
	return &plan{a.tip(), e.created}
}

// prepareNext starts to prepare the next write, if it is a load and the one before it is decided.
// Tenants that wait for a committer come first. Store.mu must be locked.
func (s *Store) prepareNext(l *tenantQueue) {
	if s.closed || s.preparing == maxAhead || len(l.planned) == 0 || len(l.planned) != len(l.ahead)+1 || len(s.ready) > 0 {
		return
	}
	r, ok := l.queue.TakeNext(func(r *request) bool {
		return r.write.Also == nil && s.suggestsNew([]*request{r})
	})
	if !ok {
		return
	}
	a := &ahead{request: r, after: slices.Clone(l.planned), done: make(chan struct{})}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	l.ahead = append(l.ahead, a)
	s.preparing++
	s.working.Go(func() {
		defer close(a.done)
		if a.err = s.prepare(l, a); a.err != nil {
			a.rollback()
		}
	})
}

// takeAhead returns the next load that is prepared, or is being so; nil if there is none.
func (s *Store) takeAhead(l *tenantQueue) *ahead {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(l.ahead) == 0 {
		return nil
	}
	a := l.ahead[0]
	l.ahead = l.ahead[1:]
	s.preparing--
	s.prepareNext(l)
	return a
}

// prepare reads, decides and copies a load.
func (s *Store) prepare(l *tenantQueue, a *ahead) (err error) {
	a.attempt, a.end = s.newAttempt(a.ctx, l.tenant, []*request{a.request})
	at := a.attempt
	before := a.after[len(a.after)-1]
	at.head, at.commitEvents, at.committedAt = &before.head, before.commitEvents, before.committedAt

	needs := apply.NeedsOfNew(a.request.write)
	slices.SortFunc(needs.Tuples, tuplestore.Tuple.Compare)
	b := new(sqldb.Batch)
	if err := at.read(b, needs); err != nil {
		return err
	}
	if s.DB.Dialect() == sqldb.Postgres {
		at.tx, err = s.DB.Pipeline(at.ctx, b)
	} else {
		err = s.DB.Send(at.ctx, b)
	}
	if err != nil {
		return err
	}
	at.view = apply.NewView(before.head)
	at.view.Add(at.existing...)
	for _, p := range a.after {
		for created := range common(p, needs.Tuples, func(t tuplestore.Tuple) tuplestore.Tuple { return t }) {
			at.view.Add(tuplestore.Fact{Tuple: created.Tuple, Qualifier: created.Qualifier})
		}
	}
	if err = at.decide(); err != nil {
		return err
	}
	next := at.planned()
	if next == nil || slices.ContainsFunc(a.after, next.overlaps) {
		return errOvertaken
	}

	s.mu.Lock()
	if a.dropped {
		s.mu.Unlock()
		return errOvertaken
	}
	l.planned = append(l.planned, next)
	s.prepareNext(l)
	s.mu.Unlock()
	if err := at.copy(); err != nil {
		return err
	}
	return at.encode()
}

// finish commits a load that was prepared, if the state is the one for which it was. It fails with
// [errOvertaken] otherwise, and as [Store.attempt] does.
func (s *Store) finish(a *ahead, told *revocations) (_ []outcome, err error) {
	<-a.done
	defer a.cancel()
	if a.err != nil {
		return nil, a.err
	}
	at := a.attempt
	defer func() { a.end(err) }()
	before := a.after[len(a.after)-1].tip
	if at.tx != nil {
		defer at.tx.Rollback()
		lock := new(sqldb.Batch)
		at.head = nil
		at.lock(lock, freeHead)
		if err := at.tx.Send(at.ctx, lock); err != nil {
			return nil, err
		}
		err = at.isAt(before)
	} else if err = at.lockAt(before); err == nil {
		defer at.tx.Rollback()
	}
	if err != nil {
		return nil, err
	}
	if err := at.commit(told); err != nil {
		return nil, err
	}
	s.asPrepared.Add(1)
	return at.outcomes, nil
}

// lockAt begins the transaction and locks the head. It fails with [errOvertaken] unless that is the
// one of a state.
func (a *attempt) lockAt(before tip) (err error) {
	lock := new(sqldb.Batch)
	a.head = nil
	a.lock(lock, ofTenant)
	if a.tx, err = a.store.DB.Pipeline(a.ctx, lock); err != nil {
		return err
	}
	if err = a.isAt(before); err != nil {
		a.tx.Rollback()
	}
	return err
}

// isAt returns [errOvertaken] unless the head that was read is the one of a state.
func (a *attempt) isAt(before tip) error {
	if a.head == nil || *a.head != before.head || a.commitEvents != before.commitEvents || a.committedAt != before.committedAt {
		return errOvertaken
	}
	return nil
}

// rollback ends what was prepared.
func (a *ahead) rollback() {
	if a.attempt == nil {
		return
	}
	if a.attempt.tx != nil {
		a.attempt.tx.Rollback()
	}
	a.end(a.err)
	a.attempt = nil
}

// committed removes the plan of the load that was committed, if it has one.
func (s *Store) committed(l *tenantQueue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(l.planned) > 0 {
		l.planned = l.planned[1:]
	}
}

// dropAhead rolls back the loads that were prepared on an attempt which has failed. They stay in
// their order.
func (s *Store) dropAhead(l *tenantQueue) {
	s.mu.Lock()
	l.planned = nil
	dropped := slices.Clone(l.ahead)
	for _, a := range dropped {
		a.dropped = true
		a.cancel()
	}
	s.mu.Unlock()
	for _, a := range dropped {
		<-a.done
		a.err = errOvertaken
		a.rollback()
	}
}

// common yields the created tuples that others contain, too, which must be in primary-key order.
func common[T any](p *plan, others []T, tuple func(T) tuplestore.Tuple) iter.Seq[version] {
	return func(yield func(version) bool) {
		for i, j := 0, 0; i < len(p.created) && j < len(others); {
			switch c := p.created[i].Tuple.Compare(tuple(others[j])); {
			case c < 0:
				i++
			case c > 0:
				j++
			default:
				if !yield(p.created[i]) {
					return
				}
				i, j = i+1, j+1
			}
		}
	}
}

// overlaps reports whether both plans create the same tuple.
func (p *plan) overlaps(q *plan) bool {
	for range common(p, q.created, func(v version) tuplestore.Tuple { return v.Tuple }) {
		return true
	}
	return false
}
