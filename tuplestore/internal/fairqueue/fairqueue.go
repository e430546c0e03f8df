// Package fairqueue is the queue of a tenant's writes.
//
// Writes to one resource keep their order, and the queue is fair between resources: a burst
// of writes to one resource delays only that resource. With
//
//	waiting for doc:a:  a1 a2 a3 a4
//	waiting for doc:b:  b1
//	waiting for doc:c:  c1 c2
//
// the items are taken in the order a1 b1 c1 a2 c2 a3 a4. The first item of a resource waits
// for at most one item of every other resource, however many they have.
//
// The queue is bounded for each resource and in total. An item beyond a bound is refused at
// once, so that its caller can try again later.
//
// A queue starts no goroutine and never blocks: its user decides when a group is taken, and
// how the outcome of an item is returned.
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
	PerKey int // items of one key; at least 1
	Total  int // items of all keys; at least 1
	// RetryAfter is the time that refused callers should wait.
	RetryAfter time.Duration
}

// Queue is a queue of items with keys. Its methods take constant time per item and are safe
// for concurrent use.
type Queue[T any] struct {
	config Config

	mu      sync.Mutex
	keys    map[string]*keyQueue // without empty queues
	order   list.List            // of *keyQueue: the same queues, the next one first
	waiting int                  // items of all keys
}

// keyQueue is the items of one key, oldest first.
type keyQueue struct {
	key   string
	items list.List     // of *item
	place *list.Element // in Queue.order
}

type item[T any] struct {
	value  T
	weight int
	queue  *keyQueue // nil after the item was taken or withdrawn
}

// Handle identifies an item in the queue.
type Handle struct {
	place *list.Element // in keyQueue.items
}

// New returns an empty queue. It panics if a bound of the configuration is
// not positive.
func New[T any](c Config) *Queue[T] {
	if c.PerKey < 1 || c.Total < 1 {
		panic(fmt.Sprintf("fairqueue: bounds must be positive: %+v", c))
	}
	return &Queue[T]{config: c, keys: make(map[string]*keyQueue)}
}

// Push adds an item after the others of its key. Weight is its share of a group, as
// [Queue.Take] counts it. If a bound is exceeded, Push fails with a
// [*tuplestore.BusyError].
func (q *Queue[T]) Push(key string, weight int, value T) (*Handle, error) {
	q.mu.Lock()
	defer q.mu.Unlock()

	l := q.keys[key]
	if l != nil && l.items.Len() >= q.config.PerKey {
		return nil, q.busy("resource", q.config.PerKey)
	}
	if q.waiting >= q.config.Total {
		return nil, q.busy("tenant", q.config.Total)
	}
	if l == nil {
		l = &keyQueue{key: key}
		l.place = q.order.PushBack(l)
		q.keys[key] = l
	}
	q.waiting++
	return &Handle{l.items.PushBack(&item[T]{value, weight, l})}, nil
}

func (q *Queue[T]) busy(queue string, limit int) error {
	return &tuplestore.BusyError{Queue: queue, Limit: limit, RetryAfter: q.config.RetryAfter}
}

// Take removes the next group and returns it in order: one item of every key, round robin,
// until the queue is empty or the next item would exceed the group's maxWeight. That item
// is the first of the next group. The first item is taken regardless of its weight.
func (q *Queue[T]) Take(maxWeight int) []T {
	q.mu.Lock()
	defer q.mu.Unlock()

	var group []T
	for weight := 0; q.waiting > 0; {
		l := q.order.Front().Value.(*keyQueue)
		place := l.items.Front()
		next := place.Value.(*item[T])
		weight += next.weight
		if len(group) > 0 && weight > maxWeight {
			break
		}
		group = append(group, next.value)
		q.order.MoveToBack(l.place)
		q.remove(place)
	}
	return group
}

// TakeNext removes the item that [Queue.Take] would take first, if accept returns true for it.
func (q *Queue[T]) TakeNext(accept func(T) bool) (value T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()

	if q.waiting == 0 {
		return value, false
	}
	l := q.order.Front().Value.(*keyQueue)
	place := l.items.Front()
	next := place.Value.(*item[T]).value
	if !accept(next) {
		return value, false
	}
	q.order.MoveToBack(l.place)
	q.remove(place)
	return next, true
}

// Cancel withdraws an item and reports whether it was in the queue. If not, it was taken,
// or withdrawn before.
func (q *Queue[T]) Cancel(t *Handle) bool {
	q.mu.Lock()
	defer q.mu.Unlock()

	if t.place.Value.(*item[T]).queue == nil {
		return false
	}
	q.remove(t.place)
	return true
}

// Len returns the number of items.
func (q *Queue[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting
}

// remove removes an item, and its key's queue if that is empty then.
func (q *Queue[T]) remove(place *list.Element) {
	it := place.Value.(*item[T])
	l := it.queue
	it.queue = nil
	l.items.Remove(place)
	q.waiting--
	if l.items.Len() == 0 {
		q.order.Remove(l.place)
		delete(q.keys, l.key)
	}
}
