// Package lease bounds the age of the rows that a process keeps in memory.
//
// Some rows decide about every request and rarely change, such as revocations and the states of
// tenants. Each process keeps them in memory and reads the changes at most once in half of
// [Term], and only while it serves requests ([Lease.Hold]). What a process has read is at most one
// term old, and a request that changes a row waits for one term before it answers ([Settle]). After
// the answer no process serves a request by the old row.
//
// The rule requires clocks that run equally fast, not equal clocks.
package lease

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
)

// Term bounds the age of what a process has read.
const Term = 200 * time.Millisecond

// timeout bounds one read.
const timeout = 10 * time.Second

// Lease is the right of one process to use what it has read. It is safe for concurrent use.
type Lease struct {
	read   func(context.Context) error
	reads  singleflight.Group
	readAt atomic.Pointer[time.Time] // when the last read began
	behind atomic.Bool               // a read is in progress in the background
}

// New returns a lease. read reads the changes since it last succeeded. It is not called
// concurrently.
func New(read func(context.Context) error) *Lease { return &Lease{read: read} }

// Hold returns once what was read is at most one [Term] old. It reads, and fails as the read
// does, only if the last read is older. One that gets old is renewed in the background.
func (l *Lease) Hold(ctx context.Context) error {
	for {
		at := l.readAt.Load()
		if at == nil || time.Since(*at) > Term {
			// Other requests may share the read, so it does not end with this request.
			reading := l.reads.DoChan("", func() (any, error) { return nil, l.renew(ctx) })
			select {
			case <-ctx.Done():
				return ctx.Err()
			case result := <-reading:
				if result.Err != nil {
					return result.Err
				}
			}
			continue
		}
		if time.Since(*at) > Term/2 && l.behind.CompareAndSwap(false, true) {
			go func() {
				defer l.behind.Store(false)
				// If it fails, the next request after the term gets the error.
				_, _, _ = l.reads.Do("", func() (any, error) { return nil, l.renew(ctx) })
			}()
		}
		return nil
	}
}

func (l *Lease) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	began := time.Now()
	if err := l.read(ctx); err != nil {
		return err
	}
	l.readAt.Store(&began)
	return nil
}

// End ends the lease: the next [Lease.Hold] reads.
func (l *Lease) End() { l.readAt.Store(nil) }

// Settle waits until every process has read the changes that were committed before, or until ctx
// ends.
func Settle(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(Term):
	}
}
