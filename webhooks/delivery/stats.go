package delivery

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// AttemptClass is a class of attempts.
type AttemptClass struct {
	Result  string // success, or the class of the failure
	Failing bool   // the receiver had failed repeatedly before
}

// Stats are counts of this process since it started, and the latest measurements.
type Stats struct {
	Attempts     map[AttemptClass]int64
	DeadLettered int64
	// Behind is the number of events that were not fanned out at the last poll.
	Behind int64
}

type stats struct {
	mu           sync.Mutex
	attempts     map[AttemptClass]int64
	deadLettered atomic.Int64
	behind       atomic.Int64
}

func (s *stats) count(c AttemptClass) {
	s.mu.Lock()
	s.attempts[c]++
	s.mu.Unlock()
}

// Stats returns the counts.
func (q *Queue) Stats() Stats {
	q.stats.mu.Lock()
	defer q.stats.mu.Unlock()
	return Stats{maps.Clone(q.stats.attempts), q.stats.deadLettered.Load(), q.stats.behind.Load()}
}

// OldestDue returns how long the oldest due delivery has been due, over all processes; 0 if
// none is due.
func (q *Queue) OldestDue(ctx context.Context) (time.Duration, error) {
	var due int64
	now := q.clock()
	if err := q.db.QueryRow(ctx, oldestDue, now.UnixMicro()).Scan(&due); err != nil || due == 0 {
		return 0, err
	}
	return max(0, now.Sub(time.UnixMicro(due))), nil
}
