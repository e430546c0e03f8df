// Package jobs runs the work of the product that no request waits for.
//
// Each kind of work is a [Loop]. Any number of processes run the same loops on one
// database, so a step is safe to run in several of them at the same time: it deletes what
// is over, or takes a lease before it works on something.
package jobs

import (
	"context"
	"log/slog"
	"time"
)

// Loop repeats a step. The zero values of Wake and Logger are for none.
type Loop struct {
	// Name says what a step does, as in "collect events". It is the log's message when a
	// step fails.
	Name string
	// Every is the pause between steps.
	Every time.Duration
	// Wake ends a pause early.
	Wake Signal
	// Logger gets the errors of steps.
	Logger *slog.Logger
}

// Run runs the step at once, and then again after each pause, until ctx ends. A step that
// succeeds and reports more work is followed by the next one without a pause. Errors are
// logged, but for those of a step that ctx has ended.
func (l Loop) Run(ctx context.Context, step func(ctx context.Context) (more bool, err error)) {
	tick := time.NewTicker(l.Every)
	defer tick.Stop()
	for ctx.Err() == nil {
		more, err := step(ctx)
		if err != nil {
			if ctx.Err() == nil && l.Logger != nil {
				l.Logger.ErrorContext(ctx, l.Name, "error", err)
			}
		} else if more {
			continue
		}
		select {
		case <-ctx.Done():
		case <-l.Wake:
		case <-tick.C:
		}
	}
}

// Once is a step without more work.
func Once(step func(ctx context.Context) error) func(ctx context.Context) (more bool, err error) {
	return func(ctx context.Context) (bool, error) { return false, step(ctx) }
}

// Signal wakes a loop. One that is sent while the loop works is received at its next
// pause; further ones until then are dropped.
type Signal chan struct{}

// NewSignal returns a signal for one loop.
func NewSignal() Signal { return make(Signal, 1) }

// Send sends the signal. It never waits, and is safe for concurrent use.
func (s Signal) Send() {
	select {
	case s <- struct{}{}:
	default:
	}
}
