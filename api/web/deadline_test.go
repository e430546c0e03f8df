package web

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestLazyDeadline(t *testing.T) {
	parent, stop := context.WithCancel(t.Context())
	d := withLazyDeadline(parent, time.Hour)
	if at, ok := d.Deadline(); d.Err() != nil || !ok || time.Until(at) < 59*time.Minute {
		t.Errorf("%v, %v, %v", d.Err(), at, ok)
	}
	stop()
	<-d.Done()
	if err := d.Err(); !errors.Is(err, context.Canceled) {
		t.Errorf("with its parent: %v", err)
	}

	d = withLazyDeadline(t.Context(), 20*time.Millisecond)
	derived, cancel := context.WithCancel(d)
	defer cancel()
	<-derived.Done()
	if !errors.Is(derived.Err(), context.DeadlineExceeded) || !errors.Is(d.Err(), context.DeadlineExceeded) {
		t.Errorf("at its time: %v, %v", derived.Err(), d.Err())
	}

	d = withLazyDeadline(t.Context(), time.Millisecond)
	time.Sleep(2 * time.Millisecond)
	if err := d.Err(); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("looked at late: %v", err)
	}

	for name, before := range map[string]bool{"waited for before": true, "and after": false} {
		d = withLazyDeadline(t.Context(), time.Hour)
		var done <-chan struct{}
		if before {
			done = d.Done()
		}
		d.end()
		if !before {
			done = d.Done()
		}
		<-done
		if err := d.Err(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: ended: %v", name, err)
		}
	}
	soon, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if at, _ := withLazyDeadline(soon, time.Hour).Deadline(); time.Until(at) > time.Minute {
		t.Errorf("the parent's deadline comes first, not %v", at)
	}
}
