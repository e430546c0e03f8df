package revocation

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"stonetown/internal/sqldb"
)

const (
	// Lease is how old a process lets what it knows of revocations become. Who
	// revokes waits as long before it answers, so that from then on no process accepts
	// what was revoked; that takes clocks that run equally fast, not equal clocks.
	Lease = 200 * time.Millisecond
	// overlap is how far every reading looks back behind the one before: further
	// than clocks differ and transactions take.
	overlap = time.Minute
)

// Item names what counts no longer: an access token by its jti, all of an
// application, or all that a key has signed.
type Item struct{ TenantID, Kind, ID string }

const (
	Token  = "token"
	Client = "client"
	Key    = "key"
)

// Feed is what a process knows of them. It reads from the database what is new, at
// most once in half a lease while tokens are verified and never while none are, so that a
// verification costs a lookup in memory.
type Feed struct {
	db    *sqldb.DB
	clock func() time.Time

	reads  singleflight.Group
	readAt atomic.Pointer[time.Time] // when the last reading began, for the lease
	behind atomic.Bool               // a reading is under way of which nobody waits for the end

	mu     sync.RWMutex
	known  map[Item]int64 // until when, in microseconds since 1970
	since  int64          // when the last reading began, by the clock that rows are stamped by
	tidied int64          // when what is over was last forgotten
}

func New(db *sqldb.DB, clock func() time.Time) *Feed {
	return &Feed{db: db, clock: clock, known: map[Item]int64{}}
}

// Has reports whether any of some things was revoked. Those without an id were not.
func (r *Feed) Has(ctx context.Context, things ...Item) (bool, error) {
	for {
		at := r.readAt.Load()
		if at == nil || time.Since(*at) > Lease {
			// Others may wait for the same reading, so it does not end with this request.
			reading := r.reads.DoChan("", func() (any, error) { return nil, r.read(context.WithoutCancel(ctx)) })
			select {
			case <-ctx.Done():
				return false, ctx.Err()
			case result := <-reading:
				if result.Err != nil {
					return false, result.Err
				}
			}
			continue
		}
		if time.Since(*at) > Lease/2 && r.behind.CompareAndSwap(false, true) {
			go func() {
				defer r.behind.Store(false)
				// If it fails, who comes when the lease is over is told.
				_, _, _ = r.reads.Do("", func() (any, error) { return nil, r.read(context.WithoutCancel(ctx)) })
			}()
		}
		return r.knows(things), nil
	}
}

func (r *Feed) knows(things []Item) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, it := range things {
		if _, ok := r.known[it]; ok && it.ID != "" {
			return true
		}
	}
	return false
}

// read takes note of what has changed.
func (r *Feed) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	began, now := time.Now(), r.clock().UnixMicro()
	r.mu.RLock()
	since := r.since - overlap.Microseconds()
	r.mu.RUnlock()
	rows, err := r.db.Query(ctx, `SELECT tenant_id, kind, id, expires_at FROM revocations WHERE changed_at > $1`, since)
	if err != nil {
		return fmt.Errorf("read revocations: %w", err)
	}
	defer rows.Close()
	changed := map[Item]int64{}
	for rows.Next() {
		var it Item
		var expires int64
		if err := rows.Scan(&it.TenantID, &it.Kind, &it.ID, &expires); err != nil {
			return fmt.Errorf("read revocations: %w", err)
		}
		changed[it] = expires
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read revocations: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for it, expires := range changed {
		if expires > now {
			r.known[it] = expires
		}
	}
	if now-r.tidied > overlap.Microseconds() {
		maps.DeleteFunc(r.known, func(_ Item, expires int64) bool { return expires <= now })
		r.tidied = now
	}
	r.since = now
	r.readAt.Store(&began)
	return nil
}

// Set queues that something counts no longer; expires is when nothing of it would be good
// any more.
func (r *Feed) Set(b *sqldb.Batch, it Item, expires time.Time) {
	b.Queue(`
		INSERT INTO revocations (tenant_id, kind, id, changed_at, expires_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (tenant_id, kind, id) DO UPDATE SET changed_at = excluded.changed_at, expires_at = excluded.expires_at`,
		[]any{it.TenantID, it.Kind, it.ID, r.clock().UnixMicro(), expires.UnixMicro()}, nil)
}

// Settle waits until every process goes by what was committed before.
func (r *Feed) Settle(ctx context.Context) {
	r.readAt.Store(nil)
	select {
	case <-ctx.Done():
	case <-time.After(Lease):
	}
}
