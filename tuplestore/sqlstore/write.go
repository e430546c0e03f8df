package sqlstore

import (
	"context"
	"crypto/rand"
	"fmt"

	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
	"stonetown/tuplestore/internal/apply"
	"stonetown/tuplestore/internal/fairqueue"
)

// request is a write on its way.
type request struct {
	ctx      context.Context // of the caller; its end does not stop the commit
	write    tuplestore.Write
	commitID string       // write's own, or a random one
	hash     []byte       // of what is written; empty under a random commit ID
	outcome  chan outcome // takes exactly one, without blocking
}

type outcome struct {
	result tuplestore.Result
	err    error
}

// line is a tenant's writes that wait. It is in Store.lines while it has any,
// or while a committer has it.
type tenantQueue struct {
	tenant string
	queue  *fairqueue.Queue[*request]
}

// Write implements [tuplestore.Store].
//
// If ctx ends while the write waits, it is withdrawn. Later it is not: Write
// then returns at once, unless there is an Also or an Attach, for whose end it
// waits. So the slices of w must not be changed after ctx has ended.
//
// All text in w must be UTF-8 without NUL.
func (s *Store) Write(ctx context.Context, tenant string, w tuplestore.Write) (tuplestore.Result, error) {
	if err := ctx.Err(); err != nil {
		return tuplestore.Result{}, err
	}
	if err := checkText(w); err != nil {
		return tuplestore.Result{}, err
	}
	r := &request{ctx: ctx, write: w, commitID: w.CommitID, outcome: make(chan outcome, 1)}
	if r.commitID == "" {
		r.commitID, r.hash = rand.Text(), []byte{}
	} else {
		r.hash = apply.Fingerprint(w)
	}
	l, handle, err := s.enqueue(tenant, r)
	if err != nil {
		return tuplestore.Result{}, err
	}
	select {
	case o := <-r.outcome:
		return o.result, o.err
	case <-ctx.Done():
	}
	if !l.queue.Cancel(handle) && (w.Also != nil || w.Attach != nil) {
		o := <-r.outcome
		return o.result, o.err
	}
	return tuplestore.Result{}, ctx.Err()
}

// enqueue puts a request into its tenant's line and sees to it that a
// committer will come.
func (s *Store) enqueue(tenant string, r *request) (*tenantQueue, *fairqueue.Handle, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, nil, tuplestore.ErrClosed
	}
	l, ok := s.queues[tenant]
	if !ok {
		l = &tenantQueue{tenant, fairqueue.New[*request](s.queue)}
	}
	weight := max(1, len(r.write.Ops))
	if r.write.Alone {
		weight = s.GroupOps + 1 // too heavy for any group
	}
	handle, err := l.queue.Push(apply.Resource(r.write), weight, r)
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
	}
	return l, handle, nil
}

// work is a committer: it serves the tenants that are ready, one group each in
// turn, and ends when there are none.
func (s *Store) work() {
	for l := s.next(nil); l != nil; l = s.next(l) {
		if group := l.queue.Take(s.GroupOps); len(group) > 0 {
			s.commit(l.tenant, group)
		}
	}
}

// next puts back the line that was served and returns the next one.
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

// Close implements [tuplestore.Store]. A write whose outcome is unknown, and
// cannot be found out because the database is not there, fails with
// [*sqldb.AmbiguousCommitError].
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	for _, l := range s.queues {
		for group := l.queue.Take(s.GroupOps); len(group) > 0; group = l.queue.Take(s.GroupOps) {
			for _, r := range group {
				r.outcome <- outcome{err: tuplestore.ErrClosed}
			}
		}
	}
	s.mu.Unlock()
	s.cancel()
	s.working.Wait()
	return nil
}

// runAlso calls the write's Also. Its context lives on when the caller's ends,
// for others are in the same transaction. A panic is its write's error alone.
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

// runAttach calls the write's Attach. A panic is its write's error alone.
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

// withDeadlineOf returns values from one context and the end of another.
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
