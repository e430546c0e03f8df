package jobs

import (
	"context"
	"math"
	"time"

	"stonetown/internal/sqldb"
)

// The values of a [Kind] that leaves them out. The attempts span about a day.
const (
	DefaultConcurrency = 4
	DefaultAttempts    = 34
	DefaultTimeout     = 110 * time.Second
	DefaultLease       = 2 * time.Minute
)

// Unlimited is a number of attempts that is never reached.
const Unlimited = math.MaxInt32

// DefaultBackoff is the backoff of a [Kind] that has none: 5 s, 10 s, 20 s and so on, up to
// an hour.
var DefaultBackoff = Exponential(5*time.Second, time.Hour)

// Kind describes how jobs of one kind are run. Name and Handle are required.
type Kind struct {
	Name string
	// Handle runs a job. It can run more than once for one job. The job fails if Handle
	// returns an error, and is not run again if that error is an [ErrDrop].
	Handle func(ctx context.Context, job Job) error
	// Concurrency is the number of jobs of the kind that a process runs at the same time.
	// Default: [DefaultConcurrency].
	Concurrency int
	// Attempts is how often a job is run before it is dead. An attempt that a stop of the
	// process interrupts does not count. Default: [DefaultAttempts].
	Attempts int
	// Backoff returns the pause after the n-th failed attempt, from 1. Default:
	// [DefaultBackoff].
	Backoff func(n int) time.Duration
	// Timeout ends the context of an attempt. Default: [DefaultTimeout].
	Timeout time.Duration
	// Lease is how long after the death of a process another process takes over its job.
	// It is renewed after each third of it. Default: [DefaultLease].
	Lease time.Duration
	// Dead is called with the last error of a job that has failed in all its attempts, in
	// the transaction that removes the job from the queue. Default: no function.
	Dead func(ctx context.Context, tx *sqldb.Tx, job Job, last error) error
}

func (k Kind) withDefaults() Kind {
	if k.Concurrency == 0 {
		k.Concurrency = DefaultConcurrency
	}
	if k.Attempts == 0 {
		k.Attempts = DefaultAttempts
	}
	if k.Backoff == nil {
		k.Backoff = DefaultBackoff
	}
	if k.Timeout == 0 {
		k.Timeout = DefaultTimeout
	}
	if k.Lease == 0 {
		k.Lease = DefaultLease
	}
	if k.Dead == nil {
		k.Dead = func(context.Context, *sqldb.Tx, Job, error) error { return nil }
	}
	return k
}

// Exponential returns a backoff that begins with first and doubles up to last.
func Exponential(first, last time.Duration) func(n int) time.Duration {
	return func(n int) time.Duration {
		pause := first
		for ; n > 1 && pause < last; n-- {
			pause *= 2
		}
		return min(pause, last)
	}
}
