// Package revocation is the feed of revocations: access tokens, applications and signing keys
// that are no longer valid before they expire.
//
// Every verification asks for them, and few requests change them. So each process keeps them in
// memory under a lease ([lease]): a verification costs a lookup, and after the answer to a request
// that revokes something ([Feed.Settle]) no process accepts what was revoked.
package revocation

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"stonetown/internal/lease"
	"stonetown/internal/sqldb"
)

// overlap is how far each read looks back before the one before it. It is longer than clocks
// differ and than transactions take.
const overlap = time.Minute

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
	lease *lease.Lease

	mu     sync.RWMutex
	known  map[Item]int64 // expiry, in microseconds since 1970
	since  int64          // when the last read began, by the clock of the rows
	tidied int64          // when expired revocations were last removed
}

// New returns the feed of the revocations in a database.
func New(db *sqldb.DB, clock func() time.Time) *Feed {
	f := &Feed{db: db, clock: clock, known: map[Item]int64{}}
	f.lease = lease.New(f.read)
	return f
}

// Has reports whether any of some items is revoked. Items without an ID are not.
func (r *Feed) Has(ctx context.Context, things ...Item) (bool, error) {
	if err := r.lease.Hold(ctx); err != nil {
		return false, err
	}
	return r.knows(things), nil
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
	now := r.clock().UnixMicro()
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
	return nil
}

// Set queues a revocation. expires is the time at which the item would have expired.
func (r *Feed) Set(b *sqldb.Batch, it Item, expires time.Time) {
	b.Queue(`
		INSERT INTO revocations (tenant_id, kind, id, changed_at, expires_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (tenant_id, kind, id) DO UPDATE SET changed_at = excluded.changed_at, expires_at = excluded.expires_at`,
		[]any{it.TenantID, it.Kind, it.ID, r.clock().UnixMicro(), expires.UnixMicro()}, nil)
}

// Republish queues that every process reads the revocations of a tenant, which is imported in this
// transaction: processes read only what has changed since they last read.
func Republish(b *sqldb.Batch, tenantID string, now time.Time) {
	b.Queue(`UPDATE revocations SET changed_at = $2 WHERE tenant_id = $1`, []any{tenantID, now.UnixMicro()}, nil)
}

// Settle waits until every process has read the revocations that were committed before.
func (r *Feed) Settle(ctx context.Context) {
	r.lease.End()
	lease.Settle(ctx)
}
