package tuplestore

import (
	"context"
	"crypto/rand"
	"math"
	"sync"
)

// Sequence orders writes of a tenant that are under way at the same time: each is applied only if
// all before it were. A store can then prepare one while the one before it commits. It is safe for
// concurrent use.
type Sequence struct {
	key string

	mu     sync.Mutex
	turns  int
	queued int           // turns whose writes have their place
	failed int           // the first turn whose write was not applied; MaxInt: none
	change chan struct{} // closed at the next change
}

// NewSequence returns a sequence without writes.
func NewSequence() *Sequence {
	return &Sequence{key: "sequence " + rand.Text(), failed: math.MaxInt, change: make(chan struct{})}
}

// Next returns the turn of the next write.
func (s *Sequence) Next() *Turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns++
	return &Turn{s, s.turns - 1}
}

func (s *Sequence) update(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	close(s.change)
	s.change = make(chan struct{})
}

// Turn is the place of a write in a [Sequence], for one call of [Store.Write]. Its methods accept a
// nil Turn, of a write without a sequence. Fail is for its owner, the others are for stores.
type Turn struct {
	sequence *Sequence
	number   int
}

// Key identifies the sequence; empty for a nil Turn.
func (t *Turn) Key() string {
	if t == nil {
		return ""
	}
	return t.sequence.key
}

// Fail ends the sequence: the writes after this one are not applied. The owner of a turn calls it
// when the write has failed or is not made.
func (t *Turn) Fail() {
	if t != nil {
		t.sequence.update(func() { t.sequence.failed = min(t.sequence.failed, t.number) })
	}
}

// Err is [ErrSequenceEnded] if a write before this one was not applied.
func (t *Turn) Err() error {
	if t == nil {
		return nil
	}
	t.sequence.mu.Lock()
	defer t.sequence.mu.Unlock()
	if t.sequence.failed < t.number {
		return ErrSequenceEnded
	}
	return nil
}

// Wait returns when the writes before this one have their place in the store. It fails with
// [ErrSequenceEnded].
func (t *Turn) Wait(ctx context.Context) error {
	if t == nil {
		return nil
	}
	for {
		t.sequence.mu.Lock()
		failed, ready, change := t.sequence.failed < t.number, t.sequence.queued >= t.number, t.sequence.change
		t.sequence.mu.Unlock()
		switch {
		case failed:
			return ErrSequenceEnded
		case ready:
			return nil
		}
		select {
		case <-change:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Queued states that this write has its place.
func (t *Turn) Queued() {
	if t != nil {
		t.sequence.update(func() { t.sequence.queued = max(t.sequence.queued, t.number+1) })
	}
}
