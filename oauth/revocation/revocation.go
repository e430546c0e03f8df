// Package revocation is the feed of revocations: access tokens, applications and signing keys
// that are no longer valid before they expire.
//
// Every verification asks for them, and few requests change them. So each process keeps the
// revocations in memory and reads new ones from the database at most once in half a [Lease],
// and only while tokens are verified. A verification costs a lookup in memory. What a process
// has read is at most one lease old, and a request that revokes something waits for one lease
// before it answers ([Feed.Settle]). After the answer no process accepts what was revoked.
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
	// Lease bounds the age of the revocations that a process has in memory. The rule above
	// requires clocks that run equally fast, not equal clocks.
	Lease = 200 * time.Millisecond
	// overlap is how far each read looks back before the one before it. It is longer than clocks
	// differ and than transactions take.
	overlap = time.Minute
)

// Item names what is revoked: an access token by its jti, an application with all its tokens,
// or a signing key with all that it has signed.
type Item struct{ TenantID, Kind, ID string }

const (
	Token  = "token"
	Client = "client"
	Key    = "key"
)

// Feed is the revocations that one process has in memory. It is safe for concurrent use.
type Feed struct {
	db    *sqldb.DB
	clock func() time.Time

	reads  singleflight.Group
	readAt atomic.Pointer[time.Time] // when the last read began, for the lease
	behind atomic.Bool               // a read is in progress in the background

	mu     sync.RWMutex
	known  map[Item]int64 // expiry, in microseconds since 1970
	since  int64          // when the last read began, by the clock of the rows
	tidied int64          // when expired revocations were last removed
}

// New returns the feed of the revocations in a database.
func New(db *sqldb.DB, clock func() time.Time) *Feed {
	return &Feed{db: db, clock: clock, known: map[Item]int64{}}
}

// Has reports whether any of some items is revoked. Items without an ID are not.
func (r *Feed) Has(ctx context.Context, things ...Item) (bool, error) {
	for {
		at := r.readAt.Load()
		if at == nil || time.Since(*at) > Lease {
			// Other requests may share the read, so it does not end with this request.
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
				// If it fails, the next request after the lease gets the error.
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

// read reads the revocations since the last read.
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

// Set queues a revocation. expires is the time at which the item would have expired.
func (r *Feed) Set(b *sqldb.Batch, it Item, expires time.Time) {
	b.Queue(`
		INSERT INTO revocations (tenant_id, kind, id, changed_at, expires_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (tenant_id, kind, id) DO UPDATE SET changed_at = excluded.changed_at, expires_at = excluded.expires_at`,
		[]any{it.TenantID, it.Kind, it.ID, r.clock().UnixMicro(), expires.UnixMicro()}, nil)
}

// Settle waits until every process has read the revocations that were committed before.
func (r *Feed) Settle(ctx context.Context) {
	r.readAt.Store(nil)
	select {
	case <-ctx.Done():
	case <-time.After(Lease):
	}
}
