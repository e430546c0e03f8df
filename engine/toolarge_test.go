package engine

import (
	"testing"
	"time"

	"stonetown/tuplestore"
)

// The time before the next attempt at a tenant that is too large is proportional to that of
// the last attempt, and increases.
func TestRetriesOfTooLargeTenantsBackOff(t *testing.T) {
	var l tooLarge
	for i, want := range []time.Duration{time.Minute, 40 * time.Minute, 80 * time.Minute, 160 * time.Minute} {
		took := 12 * time.Second
		if i == 0 {
			took = 10 * time.Millisecond
		}
		if got := l.note(1000, took); got != want {
			t.Errorf("after %d attempts: %v, want %v", i+1, got, want)
		}
	}
	for range 20 {
		l.note(1000, time.Minute)
	}
	if got := l.note(1000, time.Minute); got != retryAtMost {
		t.Errorf("after many attempts: %v", got)
	}
	deleted := tuplestore.Result{Statuses: []tuplestore.Status{tuplestore.Deleted, tuplestore.Created}, Counts: []int{60, 1}}
	if l.count(deleted); l.hasShrunk() {
		t.Error("59 of 1,000 tuples are enough")
	}
	if l.count(deleted); !l.hasShrunk() {
		t.Error("118 of 1,000 tuples are not enough")
	}
	if l.note(900, time.Second); l.hasShrunk() {
		t.Error("another attempt does not count from the beginning")
	}
	l.forget()
	if got := l.note(1000, time.Second); got != 100*time.Second {
		t.Errorf("after it has fitted: %v", got)
	}
}
