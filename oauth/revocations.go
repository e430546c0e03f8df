package oauth

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
	// revocationLease is how old a process lets what it knows of revocations become. Who
	// revokes waits as long before it answers, so that from then on no process accepts
	// what was revoked; that takes clocks that run equally fast, not equal clocks.
	revocationLease = 200 * time.Millisecond
	// revocationOverlap is how far every reading looks back behind the one before: further
	// than clocks differ and transactions take.
	revocationOverlap = time.Minute
)

// revocation names what counts no longer: an access token by its jti, all of an
// application, or all that a key has signed.
type revocation struct{ tenantID, kind, id string }

const (
	revokedToken  = "token"
	revokedClient = "client"
	revokedKey    = "key"
)

// revocations is what a process knows of them. It reads from the database what is new, at
// most once in half a lease while tokens are verified and never while none are, so that a
// verification costs a lookup in memory.
type revocations struct {
	db    *sqldb.DB
	clock func() time.Time

	reads  singleflight.Group
	readAt atomic.Pointer[time.Time] // when the last reading began, for the lease
	behind atomic.Bool               // a reading is under way of which nobody waits for the end

	mu     sync.RWMutex
	known  map[revocation]int64 // until when, in microseconds since 1970
	since  int64                // when the last reading began, by the clock that rows are stamped by
	tidied int64                // when what is over was last forgotten
}

func newRevocations(db *sqldb.DB, clock func() time.Time) *revocations {
	return &revocations{db: db, clock: clock, known: map[revocation]int64{}}
}

// has reports whether any of some things was revoked. Those without an id were not.
func (r *revocations) has(ctx context.Context, things ...revocation) (bool, error) {
	for {
		at := r.readAt.Load()
		if at == nil || time.Since(*at) > revocationLease {
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
		if time.Since(*at) > revocationLease/2 && r.behind.CompareAndSwap(false, true) {
			go func() {
				defer r.behind.Store(false)
				// If it fails, who comes when the lease is over is told.
				_, _, _ = r.reads.Do("", func() (any, error) { return nil, r.read(context.WithoutCancel(ctx)) })
			}()
		}
		return r.knows(things), nil
	}
}

func (r *revocations) knows(things []revocation) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, it := range things {
		if _, ok := r.known[it]; ok && it.id != "" {
			return true
		}
	}
	return false
}

// read takes note of what has changed.
func (r *revocations) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	began, now := time.Now(), r.clock().UnixMicro()
	r.mu.RLock()
	since := r.since - revocationOverlap.Microseconds()
	r.mu.RUnlock()
	rows, err := r.db.Query(ctx, `SELECT tenant_id, kind, id, expires_at FROM revocations WHERE changed_at > $1`, since)
	if err != nil {
		return fmt.Errorf("read revocations: %w", err)
	}
	defer rows.Close()
	changed := map[revocation]int64{}
	for rows.Next() {
		var it revocation
		var expires int64
		if err := rows.Scan(&it.tenantID, &it.kind, &it.id, &expires); err != nil {
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
	if now-r.tidied > revocationOverlap.Microseconds() {
		maps.DeleteFunc(r.known, func(_ revocation, expires int64) bool { return expires <= now })
		r.tidied = now
	}
	r.since = now
	r.readAt.Store(&began)
	return nil
}

// set queues that something counts no longer; expires is when nothing of it would be good
// any more.
func (r *revocations) set(b *sqldb.Batch, it revocation, expires time.Time) {
	b.Queue(`
		INSERT INTO revocations (tenant_id, kind, id, changed_at, expires_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (tenant_id, kind, id) DO UPDATE SET changed_at = excluded.changed_at, expires_at = excluded.expires_at`,
		[]any{it.tenantID, it.kind, it.id, r.clock().UnixMicro(), expires.UnixMicro()}, nil)
}

// settle waits until every process goes by what was committed before.
func (r *revocations) settle(ctx context.Context) {
	r.readAt.Store(nil)
	select {
	case <-ctx.Done():
	case <-time.After(revocationLease):
	}
}
