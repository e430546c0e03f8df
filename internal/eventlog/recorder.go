package eventlog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"stonetown/internal/sqldb"
)

const (
	// maxTogether is how many records are committed at once.
	maxTogether = 256
	// commitTime bounds a commit, which does not end with the request that waits for it.
	commitTime = 30 * time.Second
)

// Recorder commits events that belong to no other change. Events that arrive during a commit
// are committed together by the next one, so concurrent events share commits and a single one
// is not delayed. It is safe for concurrent use.
type Recorder struct {
	db *sqldb.DB

	mu      sync.Mutex
	waiting []*record
	busy    bool // a goroutine commits the queue
}

// record holds the events of one call.
type record struct {
	tenantID string
	events   []Event
	err      error
	done     chan struct{}
}

// NewRecorder returns a recorder for the logs in db.
func NewRecorder(db *sqldb.DB) *Recorder { return &Recorder{db: db} }

// Record returns when the events are committed. Where ctx ends first, they may be.
func (r *Recorder) Record(ctx context.Context, tenantID string, events ...Event) error {
	one := &record{tenantID: tenantID, events: events, done: make(chan struct{})}
	r.mu.Lock()
	r.waiting = append(r.waiting, one)
	if !r.busy {
		r.busy = true
		go r.commitAll(context.WithoutCancel(ctx))
	}
	r.mu.Unlock()
	select {
	case <-one.done:
		return one.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// commitAll commits until nothing waits.
func (r *Recorder) commitAll(ctx context.Context) {
	for {
		r.mu.Lock()
		n := min(len(r.waiting), maxTogether)
		together := slices.Clone(r.waiting[:n])
		r.waiting = slices.Delete(r.waiting, 0, n)
		r.busy = n > 0
		r.mu.Unlock()
		if n == 0 {
			return
		}
		err := r.commit(ctx, together)
		var ambiguous *sqldb.AmbiguousCommitError
		for _, one := range together {
			if one.err = err; err != nil && n > 1 && !errors.As(err, &ambiguous) { // a record must not fail because of another
				one.err = r.commit(ctx, []*record{one})
			}
			close(one.done)
		}
	}
}

// commit commits records in one transaction, ordered by tenant, because the transaction locks
// the rows that order the tenants' logs.
func (r *Recorder) commit(ctx context.Context, together []*record) error {
	ctx, cancel := context.WithTimeout(ctx, commitTime)
	defer cancel()
	byTenant := map[string][]Event{}
	for _, one := range together {
		byTenant[one.tenantID] = append(byTenant[one.tenantID], one.events...)
	}
	err := r.db.Tx(ctx, func(tx *sqldb.Tx) error {
		var b sqldb.Batch
		for _, tenantID := range slices.Sorted(maps.Keys(byTenant)) {
			Append(&b, tenantID, byTenant[tenantID]...)
		}
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return fmt.Errorf("record events: %w", err)
	}
	return nil
}
