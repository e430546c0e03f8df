// Package memstore is the tuple store in memory, for tests and for programs that embed the
// engine and need no durability.
//
// It stores the whole history of every tenant, so no revision is ever collected. Its writes
// have the same queue ([fairqueue]) and the same rules ([apply]) as those of the SQL
// stores, one at a time per tenant. Reads never wait for a write in progress, because
// history does not change.
package memstore

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"stonetown/tuplestore"
	"stonetown/tuplestore/internal/apply"
	"stonetown/tuplestore/internal/fairqueue"
)

// Config bounds the queues of writes. Zero values get the defaults.
type Config struct {
	PerResource int // queued writes to one resource; default 1,000
	PerTenant   int // queued writes of one tenant; default 10,000

	// Clock is the time of commits. Default: time.Now.
	Clock func() time.Time
}

// Store is a [tuplestore.Store] in memory.
type Store struct {
	queue fairqueue.Config
	epoch string // one for all tenants: a store is never restored
	clock func() time.Time

	mu      sync.Mutex
	tenants map[string]*tenant
	closed  bool
	writes  sync.WaitGroup // grows only while mu is held and closed is false
	closing chan struct{}  // closed with the store
}

var _ tuplestore.Store = (*Store)(nil)

// New returns an empty store.
func New(c Config) *Store {
	bound := func(n, byDefault int) int {
		if n > 0 {
			return n
		}
		return byDefault
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	return &Store{
		clock: c.Clock,
		queue: fairqueue.Config{
			PerKey:     bound(c.PerResource, 1000),
			Total:      bound(c.PerTenant, 10_000),
			RetryAfter: time.Second,
		},
		epoch:   rand.Text(),
		tenants: make(map[string]*tenant),
		closing: make(chan struct{}),
	}
}

// tenant returns the state of a tenant, empty if it is new.
func (s *Store) tenant(id string) *tenant {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tenants[id]
	if t == nil {
		t = &tenant{
			lock:    writeLock{queue: fairqueue.New[chan struct{}](s.queue)},
			history: newHistory(),
		}
		s.tenants[id] = t
	}
	return t
}

// Head implements [tuplestore.Store].
func (s *Store) Head(_ context.Context, tenant string) (tuplestore.Head, error) {
	head, _ := s.KnownHead(tenant)
	return head, nil
}

// KnownHead implements [tuplestore.Store]. ok is always true.
func (s *Store) KnownHead(tenant string) (tuplestore.Head, bool) {
	return s.tenant(tenant).head(s.epoch), true
}

// Latest implements [tuplestore.Store].
func (s *Store) Latest(_ context.Context, tenant string) (tuplestore.Head, []byte, error) {
	t := s.tenant(tenant)
	head := t.head(s.epoch)
	document, _ := t.schema(head.Revision)
	return head, document, nil
}

// Changes implements [tuplestore.Store].
func (s *Store) Changes(_ context.Context, tenant string, after tuplestore.Revision, limit int) ([]tuplestore.Commit, error) {
	return s.tenant(tenant).changes(after, limit), nil
}

// KnownChanges implements [tuplestore.Store]. It never answers: Changes has no I/O.
func (s *Store) KnownChanges(string, string, tuplestore.Revision) ([]tuplestore.Commit, bool) {
	return nil, false
}

// sinceCommits bounds what Since returns.
const sinceCommits = 128

// Since implements [tuplestore.Store].
func (s *Store) Since(_ context.Context, tenant string, after tuplestore.Revision) (head tuplestore.Head, changed []tuplestore.Tuple, complete bool, err error) {
	t := s.tenant(tenant)
	t.mu.RLock()
	defer t.mu.RUnlock()
	head = t.headLocked(s.epoch)
	if head.Revision < after || head.Revision > after+sinceCommits {
		return head, nil, false, nil
	}
	for _, c := range t.commits[after:] {
		for _, change := range c.Changes {
			changed = append(changed, change.Tuple)
		}
	}
	return head, changed, true, nil
}

// RevisionAt implements [tuplestore.Store].
func (s *Store) RevisionAt(_ context.Context, tenant string, instant time.Time) (rev tuplestore.Revision, epoch string, err error) {
	return s.tenant(tenant).revisionAt(instant), s.epoch, nil
}

// CommittedAt implements [tuplestore.Store].
func (s *Store) CommittedAt(_ context.Context, tenant string, rev tuplestore.Revision) (time.Time, error) {
	return s.tenant(tenant).committedAt(rev)
}

// Page implements [tuplestore.Store]. It examines all tuples that may match, because they
// are in memory.
func (s *Store) Page(ctx context.Context, tenant string, f tuplestore.Filter, after *tuplestore.Record, limit, _ int) (page []tuplestore.Record, next *tuplestore.Record, err error) {
	page, err = s.SnapshotIn(nil, tenant).List(ctx, f, after, limit+1)
	if err != nil || len(page) <= limit {
		return page, nil, err
	}
	return page[:limit], &page[limit-1], nil
}

// Snapshot implements [tuplestore.Store].
func (s *Store) Snapshot(tenant string, rev tuplestore.Revision) tuplestore.Snapshot {
	return &snapshot{s.tenant(tenant), rev}
}

// SnapshotIn implements [tuplestore.Store]. There are no transactions: tx is nil.
func (s *Store) SnapshotIn(_ *tuplestore.Tx, tenant string) tuplestore.Snapshot {
	t := s.tenant(tenant)
	return &snapshot{t, t.head(s.epoch).Revision}
}

// Write implements [tuplestore.Store]. Also gets no transaction, and must not write to the
// same tenant, which is locked.
func (s *Store) Write(ctx context.Context, tenant string, w tuplestore.Write) (_ tuplestore.Result, err error) {
	defer func() {
		if err != nil {
			w.Turn.Fail()
		}
		w.Turn.Queued()
	}()
	if err := s.begin(); err != nil {
		return tuplestore.Result{}, err
	}
	defer s.writes.Done()

	if err := w.Turn.Wait(ctx); err != nil {
		return tuplestore.Result{}, err
	}

	t := s.tenant(tenant)
	if err := t.lock.acquire(ctx, s.closing, apply.Resource(w)); err != nil {
		return tuplestore.Result{}, err
	}
	defer t.lock.release()
	return t.write(ctx, s.epoch, s.clock, w)
}

func (s *Store) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return tuplestore.ErrClosed
	}
	s.writes.Add(1)
	return nil
}

// Close implements [tuplestore.Store]. Reads still work afterwards.
func (s *Store) Close() error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.closing)
	}
	s.mu.Unlock()
	s.writes.Wait()
	return nil
}
