package tuplestore

import (
	"context"
	"errors"
	"testing"
	"time"
)

// A failure ends the turns after it, and none before it.
func TestSequence(t *testing.T) {
	s := NewSequence()
	first, second, third := s.Next(), s.Next(), s.Next()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := second.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the second write did not wait for the first: %v", err)
	}
	second.Fail()
	for name, got := range map[string]error{"first": first.Wait(t.Context()), "first again": first.Err(), "second": second.Err()} {
		if got != nil {
			t.Errorf("%s: %v", name, got)
		}
	}
	first.Queued()
	if err := second.Wait(t.Context()); err != nil {
		t.Errorf("second, after the first: %v", err)
	}
	if err := third.Err(); !errors.Is(err, ErrSequenceEnded) {
		t.Errorf("third: %v", err)
	}
	if err := third.Wait(t.Context()); !errors.Is(err, ErrSequenceEnded) {
		t.Errorf("third waits: %v", err)
	}
	var none *Turn
	none.Fail()
	none.Queued()
	if none.Key() != "" || none.Err() != nil || none.Wait(t.Context()) != nil {
		t.Error("a write without a sequence has one")
	}
}
