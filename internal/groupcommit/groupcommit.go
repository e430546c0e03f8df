// Package groupcommit commits the changes of concurrent callers in shared transactions (group
// commit).
//
// A commit takes about as long for many rows as for one. Changes that arrive during a commit are
// therefore committed together by the next one: a single change is committed at once, and the
// more callers there are, the larger the groups.
//
// # Errors
//
// A change does not fail because of another one. If a group cannot be committed, each of its
// changes is committed alone, and those that fail again have failed. Three kinds of errors are
// not the fault of a change, and are returned for the whole group:
//
//   - The outcome is unknown ([sqldb.AmbiguousCommitError]). The group may have been applied, so
//     that another try could apply a change twice.
//   - The time of the group is over. It includes the commits of single changes, so that a
//     database that does not respond delays the callers by one such time, and not by one for each
//     change.
//   - The database cannot be reached, or lacks disk space, memory or connections. If a connection
//     broke before the commit, the group is repeated once, by another connection.
package groupcommit

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"stonetown/internal/sqldb"
	"stonetown/internal/tracing"
)

// maxGroup is how many changes are committed together at most.
const maxGroup = 256

// Committer commits changes, which are values of T. It is safe for concurrent use.
type Committer[T any] struct {
	db      transactor
	timeout time.Duration
	first   func(*sqldb.Batch, []T) // nil: the transactions are serializable
	queue   func(*sqldb.Batch, []T)

	mu      sync.Mutex
	waiting []*request[T]
	busy    bool // a goroutine commits what waits
}

// transactor is the part of [sqldb.DB] that commits.
type transactor interface {
	Tx(ctx context.Context, fn func(*sqldb.Tx) error) error
	ReadCommitted(ctx context.Context, first, last func(*sqldb.Batch)) error
}

// request is the call of a caller.
type request[T any] struct {
	ctx    context.Context
	change T
	err    error
	done   chan struct{}
}

// New returns a committer of changes to db. queue adds the statements of some changes, which are
// in the order of their calls, to a batch. It may be called several times for a change, because
// transactions can be repeated. timeout bounds the time of a group.
func New[T any](db *sqldb.DB, timeout time.Duration, queue func(b *sqldb.Batch, changes []T)) *Committer[T] {
	return &Committer[T]{db: db, timeout: timeout, queue: queue}
}

// NewReadCommitted returns a committer whose transactions are those of [sqldb.DB.ReadCommitted].
// last can depend on the rows of first, so one change can turn out to be void without an error of
// the group. Both must add the statements that lock rows in one order of the rows.
func NewReadCommitted[T any](db *sqldb.DB, timeout time.Duration, first, last func(b *sqldb.Batch, changes []T)) *Committer[T] {
	return &Committer[T]{db: db, timeout: timeout, first: first, queue: last}
}

// Commit returns when a change is committed or has failed. Its statements are applied once or, if
// there is an error, not at all, unless the error is a [*sqldb.AmbiguousCommitError]. If ctx ends
// first, its error is returned, and the change may be applied later.
func (c *Committer[T]) Commit(ctx context.Context, change T) error {
	r := &request[T]{ctx: ctx, change: change, done: make(chan struct{})}
	c.mu.Lock()
	c.waiting = append(c.waiting, r)
	if !c.busy {
		c.busy = true
		go c.run()
	}
	c.mu.Unlock()
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run commits groups until no change waits.
func (c *Committer[T]) run() {
	for {
		c.mu.Lock()
		n := min(len(c.waiting), maxGroup)
		group := slices.Clone(c.waiting[:n])
		c.waiting = slices.Delete(c.waiting, 0, n)
		c.busy = n > 0
		c.mu.Unlock()
		if n == 0 {
			return
		}
		c.commitGroup(group)
	}
}

// commitGroup commits the changes of a group together or, if that fails because of one of them,
// each alone.
func (c *Committer[T]) commitGroup(group []*request[T]) {
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	err := c.commit(ctx, group)
	if sqldb.IsUnavailable(err) && !isAmbiguous(err) {
		err = c.commit(ctx, group)
	}
	alone := err != nil && len(group) > 1 && ctx.Err() == nil &&
		!isAmbiguous(err) && !sqldb.IsUnavailable(err) && !sqldb.IsExhausted(err)
	for i, r := range group {
		if r.err = err; alone {
			r.err = c.commit(ctx, group[i:i+1])
		}
		close(r.done)
	}
}

func isAmbiguous(err error) bool {
	_, ok := errors.AsType[*sqldb.AmbiguousCommitError](err)
	return ok
}

// commit commits changes in one transaction. It is part of the trace of the first request, and
// linked to those of the others.
func (c *Committer[T]) commit(ctx context.Context, group []*request[T]) (err error) {
	ctx, span := tracing.StartShared(ctx, "groupcommit", func(yield func(context.Context) bool) {
		for _, r := range group {
			if !yield(r.ctx) {
				return
			}
		}
	})
	span.Int("stonetown.writes", len(group))
	defer func() { span.End(err) }()
	changes := make([]T, len(group))
	for i, r := range group {
		changes[i] = r.change
	}
	if c.first != nil {
		return c.db.ReadCommitted(ctx, func(b *sqldb.Batch) { c.first(b, changes) }, func(b *sqldb.Batch) { c.queue(b, changes) })
	}
	return c.db.Tx(ctx, func(tx *sqldb.Tx) error {
		var b sqldb.Batch
		c.queue(&b, changes)
		return tx.Send(ctx, &b)
	})
}
