package jobs

import (
	"context"
	"log/slog"
	"time"
)

// Loop repeats a step, such as deleting expired rows. Every process runs the same loops on
// one database, so a step must be safe to run in several of them at the same time.
type Loop struct {
	// Name describes the step, as in "collect events". It is the message of the log entry
	// for a failed step.
	Name string
	// Every is the pause between steps.
	Every time.Duration
	// Wake ends a pause early. Default: pauses are not ended early.
	Wake Signal
	// Logger receives the errors of steps. Default: errors are discarded.
	Logger *slog.Logger
}

// Run runs the step at once, and again after each pause, until ctx ends. A step that
// succeeds and reports more work is followed by the next one without a pause. Errors are
// logged, except those of a step that ctx has ended.
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

// Once adapts a step that never reports more work.
func Once(step func(ctx context.Context) error) func(ctx context.Context) (more bool, err error) {
	return func(ctx context.Context) (bool, error) { return false, step(ctx) }
}

// Signal wakes a loop. A signal that is sent while a step runs is received at the next
// pause; further ones until then are dropped.
type Signal chan struct{}

// NewSignal returns a signal for one loop.
func NewSignal() Signal { return make(Signal, 1) }

// Send sends the signal. It never blocks, and is safe for concurrent use.
func (s Signal) Send() {
	select {
	case s <- struct{}{}:
	default:
	}
}
