package sqlstore

import (
	"context"
	"fmt"

	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
	"stonetown/tuplestore/internal/apply"
	"stonetown/tuplestore/internal/fairqueue"
)

// request is a write in progress.
type request struct {
	ctx     context.Context // of the caller; its end does not stop a commit
	write   tuplestore.Write
	hash    []byte       // of the contents; nil without a commit ID
	outcome chan outcome // receives exactly one, without blocking
	sent    []sent       // by commits whose answers were lost, in order
}

// sent is the outcome of a write without a commit ID in an attempt that may have been committed: it
// was if its mark exists.
type sent struct {
	mark    *mark
	outcome outcome
}

type outcome struct {
	result tuplestore.Result
	err    error
}

// deliver returns the outcome to the caller.
func (r *request) deliver(o outcome) {
	if o.err != nil {
		r.write.Turn.Fail()
	}
	r.outcome <- o
}

// tenantQueue is the queue of a tenant's writes. It is in Store.queues while it has any, or
// while a committer has it.
type tenantQueue struct {
	tenant string
	queue  *fairqueue.Queue[*request]

	// Guarded by Store.mu:
	planned []*plan  // the loads that are decided and not committed yet, in order
	ahead   []*ahead // the loads that no committer has yet, in order
}

// Write implements [tuplestore.Store].
//
// If ctx ends while the write is queued, it is withdrawn. Later it is not: Write then
// returns at once, unless there is an Also or an Attach, whose end it awaits. The slices of
// w must therefore not be changed after ctx has ended.
//
// All text in w must be UTF-8 without NUL.
func (s *Store) Write(ctx context.Context, tenant string, w tuplestore.Write) (_ tuplestore.Result, err error) {
	defer func() {
		if err != nil {
			w.Turn.Fail()
		}
	}()
	if err := ctx.Err(); err != nil {
		return tuplestore.Result{}, err
	}
	if err := checkText(w); err != nil {
		return tuplestore.Result{}, err
	}
	r := &request{ctx: ctx, write: w, outcome: make(chan outcome, 1)}
	if w.CommitID != "" {
		r.hash = apply.Fingerprint(w)
	}
	if err := w.Turn.Wait(ctx); err != nil {
		return tuplestore.Result{}, err
	}
	l, handle, err := s.enqueue(tenant, r)
	if err != nil {
		return tuplestore.Result{}, err
	}
	w.Turn.Queued()
	select {
	case o := <-r.outcome:
		return o.result, o.err
	case <-ctx.Done():
		w.Turn.Fail() // before the next write can be taken in its place
	}
	if !l.queue.Cancel(handle) && (w.Also != nil || w.Attach != nil) {
		o := <-r.outcome
		return o.result, o.err
	}
	return tuplestore.Result{}, ctx.Err()
}

// enqueue adds a request to its tenant's queue, and starts a committer if necessary.
func (s *Store) enqueue(tenant string, r *request) (*tenantQueue, *fairqueue.Handle, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, nil, tuplestore.ErrClosed
	}
	l, ok := s.queues[tenant]
	if !ok {
		l = &tenantQueue{tenant: tenant, queue: fairqueue.New[*request](s.queue)}
	}
	weight := max(1, len(r.write.Ops)+len(r.write.Preconditions))
	if r.write.Alone {
		weight = s.GroupOps + 1 // too heavy for a group
	}
	key := r.write.Turn.Key()
	if key == "" {
		key = apply.Resource(r.write)
	}
	handle, err := l.queue.Push(key, weight, r)
	if err != nil {
		return nil, nil, err
	}
	if !ok {
		s.queues[tenant] = l
		s.ready = append(s.ready, l)
		if s.committers < s.Committers {
			s.committers++
			s.working.Go(s.work)
		}
	} else {
		s.prepareNext(l)
	}
	return l, handle, nil
}

// work is a committer: it commits groups of the tenants that are ready, one group each,
// round robin, and ends when there are none. What is prepared ahead follows its group.
func (s *Store) work() {
	for l := s.next(nil); l != nil; l = s.next(l) {
		if group := l.queue.Take(s.GroupOps); len(group) > 0 {
			s.DB.OnCommitThread(func() { s.commit(l, group, nil) })
		}
		for a := s.takeAhead(l); a != nil; a = s.takeAhead(l) {
			s.DB.OnCommitThread(func() { s.commit(l, []*request{a.request}, a) })
		}
	}
}

// next returns the next queue, after it has put back the one that was served.
func (s *Store) next(served *tenantQueue) *tenantQueue {
	s.mu.Lock()
	defer s.mu.Unlock()
	if served != nil {
		if served.queue.Len() > 0 {
			s.ready = append(s.ready, served)
		} else {
			delete(s.queues, served.tenant)
		}
	}
	if len(s.ready) == 0 {
		s.committers--
		return nil
	}
	l := s.ready[0]
	s.ready = s.ready[1:]
	return l
}

// Close implements [tuplestore.Store]. A write whose outcome is unknown, and cannot be
// determined because the database is unavailable, fails with [*sqldb.AmbiguousCommitError].
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	for _, l := range s.queues {
		for group := l.queue.Take(s.GroupOps); len(group) > 0; group = l.queue.Take(s.GroupOps) {
			for _, r := range group {
				r.deliver(outcome{err: tuplestore.ErrClosed})
			}
		}
	}
	s.mu.Unlock()
	s.cancel()
	s.working.Wait()
	return nil
}

// runAlso calls the write's Also. Its context does not end with the caller's, because other
// writes are in the same transaction. A panic is the error of its write only.
func (r *request) runAlso(a *attempt) (err error) {
	if r.write.Also == nil {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in Also: %v", p)
		}
	}()
	ctx, cancel := withDeadlineOf(context.WithoutCancel(r.ctx), a.ctx)
	defer cancel()
	return r.write.Also(ctx, a.tx.Tx)
}

// runEvent calls the write's Event. A panic is the error of its write only.
func (r *request) runEvent(result tuplestore.Result) (event string, err error) {
	if r.write.Event == nil {
		return "", nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in Event: %v", p)
		}
	}()
	return r.write.Event(result), nil
}

// runAttach calls the write's Attach. A panic is the error of its write only.
func (r *request) runAttach(result tuplestore.Result, b *sqldb.Batch) (err error) {
	if r.write.Attach == nil {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in Attach: %v", p)
		}
	}()
	r.write.Attach(result, b)
	return nil
}

// withDeadlineOf returns a context with the values of one context and the end of another.
func withDeadlineOf(values, end context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(values)
	stop := context.AfterFunc(end, func() { cancel(context.Cause(end)) })
	return ctx, func() { stop(); cancel(nil) }
}

// alsoError is the failure of one write's Also or Attach.
type alsoError struct {
	request *request
	err     error
}

func (e *alsoError) Error() string { return e.err.Error() }
func (e *alsoError) Unwrap() error { return e.err }
