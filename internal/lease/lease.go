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

// Hold returns once what was read is at most one [Term] old and, after [Lease.End], was read after
// that. It reads, and fails as the read does, only if the last read is older. One that gets old is
// renewed in the background.
func (l *Lease) Hold(ctx context.Context) error {
	for called := time.Now(); ; {
		at := l.readAt.Load()
		if at == nil || called.Sub(*at) > Term {
			began, err := l.join(ctx)
			if err != nil || !began.Before(called) {
				return err
			}
			continue
		}
		if called.Sub(*at) > Term/2 && l.behind.CompareAndSwap(false, true) {
			go func() {
				defer l.behind.Store(false)
				// If it fails, the next request after the term gets the error.
				_, _, _ = l.reads.Do("", func() (any, error) { return l.renew(ctx) })
			}()
		}
		return nil
	}
}

// Renew returns once a read has succeeded that began after the call. It fails as the read does.
func (l *Lease) Renew(ctx context.Context) error {
	for called := time.Now(); ; {
		began, err := l.join(ctx)
		if err != nil || !began.Before(called) {
			return err
		}
	}
}

// join waits for the read in progress, or for a new one. It returns when the read began.
func (l *Lease) join(ctx context.Context) (began time.Time, err error) {
	// Other requests may share the read, so it does not end with this request.
	reading := l.reads.DoChan("", func() (any, error) { return l.renew(ctx) })
	select {
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	case result := <-reading:
		if result.Err != nil {
			return time.Time{}, result.Err
		}
		return result.Val.(time.Time), nil
	}
}

// renew reads and returns when the read began.
func (l *Lease) renew(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	last, began := l.readAt.Load(), time.Now()
	if err := l.read(ctx); err != nil {
		return time.Time{}, err
	}
	// If the lease has ended since, the read may not have seen the change that ended it.
	l.readAt.CompareAndSwap(last, &began)
	return began, nil
}

// End ends the lease: a [Lease.Hold] that is called later waits for a read that begins later.
func (l *Lease) End() { l.readAt.Store(new(time.Time)) } // a pointer that differs from all before

// Settle waits until every process has read the changes that were committed before, or until ctx
// ends.
func Settle(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(Term):
	}
}
