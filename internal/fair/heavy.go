package fair

import (
	"sync"
	"sync/atomic"
	"time"
)

// heavy is how much work is in progress on threads of [NewHeavyThreads], and heavyEnded when such
// work last ended, after started.
var (
	heavy      atomic.Int64
	heavyEnded atomic.Int64
	started    = time.Now()
)

// lately is longer than what passes between two heavy requests of a caller that always has one.
const lately = 100 * time.Millisecond

// heavyLately reports whether there is heavy work, or was some lately.
func heavyLately() bool {
	if heavy.Load() > 0 {
		return true
	}
	at := heavyEnded.Load()
	return at > 0 && time.Since(started)-time.Duration(at) < lately
}

// beginHeavy counts heavy work, until end is called.
func beginHeavy() (end func()) {
	heavy.Add(1)
	light.shorten()
	return func() {
		heavyEnded.Store(int64(time.Since(started)))
		heavy.Add(-1)
	}
}

// shortSlice is the time slice of all other threads while there is heavy work, the shortest that
// Linux has. These share the processors that heavy work leaves: light requests, the garbage
// collector, and the parts of writes that are not commits. A thread that wakes up there waits for a
// slice of 0.1 ms, not for the default, which is milliseconds. Without heavy work they have the
// default, because with short slices threads interrupt each other more often, and a busy server does
// less. They have it also if the database is another process: on the same machine, its threads would
// wait for those with shorter slices.
const shortSlice = 100 * time.Microsecond

// light are the time slices of the threads that are not for heavy work.
var light timeSlices

type timeSlices struct {
	mayBeShort atomic.Bool // the database is in the process
	mu         sync.Mutex  // of changes
	short      atomic.Bool
}

// shorten makes the slices short until there was no heavy work lately.
func (s *timeSlices) shorten() {
	if s.short.Load() || !s.mayBeShort.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.short.Swap(true) {
		setSlices(shortSlice)
		time.AfterFunc(lately, s.restore)
	}
}

// restore makes the slices those of the default if there was no heavy work lately.
func (s *timeSlices) restore() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.short.Store(false) // before the question, so that work which begins now waits for the mutex
	if heavyLately() {
		s.short.Store(true)
		time.AfterFunc(lately, s.restore)
		return
	}
	setSlices(0)
}
