// Package fairqueue is the queue in which a tenant's writes wait.
//
// Writes to one resource keep their order, and resources take turns: a burst
// on one resource waits behind itself and not in front of others. With
//
//	waiting for doc:a:  a1 a2 a3 a4
//	waiting for doc:b:  b1
//	waiting for doc:c:  c1 c2
//
// the queue is emptied as a1 b1 c1 a2 c2 a3 a4. Whoever comes new waits for at
// most one item of every other resource, however long their lines are.
//
// The queue is bounded twice, by resource and in total. It refuses what does
// not fit at once, so that the caller can be told to come back later, instead
// of letting it wait for longer than anybody would.
//
// A queue starts no goroutine and never blocks: its user decides when a group
// is taken, and how those who wait learn of their outcome.
package fairqueue

import (
	"container/list"
	"fmt"
	"sync"
	"time"

	"stonetown/tuplestore"
)

// Config bounds a queue.
type Config struct {
	PerKey int // items that may wait under one key; at least 1
	Total  int // items that may wait altogether; at least 1
	// RetryAfter is what those refused are told to wait.
	RetryAfter time.Duration
}

// Queue holds items that wait under keys. Its methods take constant time per
// item and are safe for concurrent use.
type Queue[T any] struct {
	config Config

	mu      sync.Mutex
	lines   map[string]*line // the lines that are not empty
	turns   list.List        // of *line: the same lines, the next one to take from in front
	waiting int              // items in all lines
}

// line is the items of one key, oldest in front.
type line struct {
	key   string
	items list.List     // of *item
	turn  *list.Element // its place in Queue.turns
}

type item[T any] struct {
	value  T
	weight int
	line   *line // nil once it was taken or withdrawn
}

// Ticket is an item's place in the queue.
type Ticket struct {
	place *list.Element // in line.items
}

// New returns an empty queue. It panics if a bound of the configuration is
// not positive.
func New[T any](c Config) *Queue[T] {
	if c.PerKey < 1 || c.Total < 1 {
		panic(fmt.Sprintf("fairqueue: bounds must be positive: %+v", c))
	}
	return &Queue[T]{config: c, lines: make(map[string]*line)}
}

// Push puts an item at the end of its key's line. Weight is its share of a
// group, as [Queue.Take] counts it. When the line or the queue is full it
// fails with a [*tuplestore.BusyError] and nothing is queued.
func (q *Queue[T]) Push(key string, weight int, value T) (*Ticket, error) {
	q.mu.Lock()
	defer q.mu.Unlock()

	l := q.lines[key]
	if l != nil && l.items.Len() >= q.config.PerKey {
		return nil, q.busy("resource", q.config.PerKey)
	}
	if q.waiting >= q.config.Total {
		return nil, q.busy("tenant", q.config.Total)
	}
	if l == nil {
		l = &line{key: key}
		l.turn = q.turns.PushBack(l)
		q.lines[key] = l
	}
	q.waiting++
	return &Ticket{l.items.PushBack(&item[T]{value, weight, l})}, nil
}

func (q *Queue[T]) busy(queue string, limit int) error {
	return &tuplestore.BusyError{Queue: queue, Limit: limit, RetryAfter: q.config.RetryAfter}
}

// Take removes the next group and returns it in order: one item of every key
// in turn, round and round, until the queue is empty or the next item would
// bring the group's weight above maxWeight. That item goes first the next
// time. The first item is taken whatever it weighs.
func (q *Queue[T]) Take(maxWeight int) []T {
	q.mu.Lock()
	defer q.mu.Unlock()

	var group []T
	for weight := 0; q.waiting > 0; {
		l := q.turns.Front().Value.(*line)
		place := l.items.Front()
		next := place.Value.(*item[T])
		weight += next.weight
		if len(group) > 0 && weight > maxWeight {
			break
		}
		group = append(group, next.value)
		q.turns.MoveToBack(l.turn)
		q.remove(place)
	}
	return group
}

// Cancel withdraws an item and reports whether it was still waiting. If not,
// it was taken, or withdrawn before.
func (q *Queue[T]) Cancel(t *Ticket) bool {
	q.mu.Lock()
	defer q.mu.Unlock()

	if t.place.Value.(*item[T]).line == nil {
		return false
	}
	q.remove(t.place)
	return true
}

// Len is the number of items that wait.
func (q *Queue[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting
}

// remove takes an item out of its line, and an emptied line out of the queue.
func (q *Queue[T]) remove(place *list.Element) {
	it := place.Value.(*item[T])
	l := it.line
	it.line = nil
	l.items.Remove(place)
	q.waiting--
	if l.items.Len() == 0 {
		q.turns.Remove(l.turn)
		delete(q.lines, l.key)
	}
}
