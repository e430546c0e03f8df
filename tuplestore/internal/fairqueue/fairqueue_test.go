package fairqueue

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"stonetown/tuplestore"
)

func TestBurstDelaysOnlyItsKey(t *testing.T) {
	q := New[string](Config{PerKey: 10, Total: 100})
	for _, name := range []string{"a1", "a2", "a3", "a4", "b1", "c1", "c2"} {
		if _, err := q.Push(name[:1], 1, name); err != nil {
			t.Fatal(err)
		}
	}
	var order []string
	for q.Len() > 0 {
		order = append(order, q.Take(2)...)
	}
	if got, want := strings.Join(order, " "), "a1 b1 c1 a2 c2 a3 a4"; got != want {
		t.Errorf("taken in order %s, want %s", got, want)
	}
}

// TakeNext takes the item that Take would, or none.
func TestTakeNext(t *testing.T) {
	q := New[string](Config{PerKey: 10, Total: 100})
	take := func(names string) string {
		name, _ := q.TakeNext(func(name string) bool { return strings.Contains(names, name) })
		return name
	}
	for _, name := range []string{"a1", "a2", "b1"} {
		if _, err := q.Push(name[:1], 1, name); err != nil {
			t.Fatal(err)
		}
	}
	for i, step := range []struct{ accepted, want string }{{"a2 b1", ""}, {"a1", "a1"}, {"a2", ""}, {"a2 b1", "b1"}, {"a2", "a2"}, {"a2", ""}} {
		if got := take(step.accepted); got != step.want {
			t.Errorf("step %d took %q, want %q", i, got, step.want)
		}
	}
	if q.Len() != 0 {
		t.Errorf("%d items are left", q.Len())
	}
}

func TestHeavyItemIsTakenAlone(t *testing.T) {
	q := New[string](Config{PerKey: 10, Total: 100})
	for _, it := range []struct {
		name   string
		weight int
	}{{"heavy", 50}, {"light", 1}, {"heavier", 70}} {
		if _, err := q.Push(it.name, it.weight, it.name); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range [][]string{{"heavy"}, {"light"}, {"heavier"}, nil} {
		if got := q.Take(10); !slices.Equal(got, want) {
			t.Errorf("took %v, want %v", got, want)
		}
	}
}

func TestFullQueueRefuses(t *testing.T) {
	q := New[int](Config{PerKey: 2, Total: 3, RetryAfter: time.Second})
	push := func(key string) error {
		_, err := q.Push(key, 1, 0)
		return err
	}
	for _, key := range []string{"a", "a", "b"} {
		if err := push(key); err != nil {
			t.Fatal(err)
		}
	}
	for key, want := range map[string]tuplestore.BusyError{
		"a": {Queue: "resource", Limit: 2, RetryAfter: time.Second},
		"b": {Queue: "tenant", Limit: 3, RetryAfter: time.Second},
	} {
		var busy *tuplestore.BusyError
		if err := push(key); !errors.As(err, &busy) || *busy != want {
			t.Errorf("push %s: %#v, want %#v", key, err, want)
		}
	}
	if q.Len() != 3 {
		t.Errorf("%d items wait, want the 3 that were accepted", q.Len())
	}
	q.Take(2)
	if err := push("a"); err != nil {
		t.Errorf("push into a queue with room: %v", err)
	}
}

// naive implements the documentation of the queue without regard to cost.
type naive struct {
	keys  []string // in order
	lines map[string][]entry
}

type entry struct{ id, weight int }

func (n *naive) len() (waiting int) {
	for _, l := range n.lines {
		waiting += len(l)
	}
	return waiting
}

func (n *naive) take(maxWeight int) (group []int) {
	weight := 0
	for len(n.keys) > 0 {
		key := n.keys[0]
		next := n.lines[key][0]
		if weight += next.weight; len(group) > 0 && weight > maxWeight {
			return group
		}
		group = append(group, next.id)
		n.keys = append(n.keys[1:], key)
		n.drop(key, 0)
	}
	return group
}

func (n *naive) cancel(id int) bool {
	for key, l := range n.lines {
		if i := slices.IndexFunc(l, func(e entry) bool { return e.id == id }); i >= 0 {
			n.drop(key, i)
			return true
		}
	}
	return false
}

func (n *naive) drop(key string, i int) {
	if n.lines[key] = slices.Delete(n.lines[key], i, i+1); len(n.lines[key]) == 0 {
		n.keys = slices.DeleteFunc(n.keys, func(k string) bool { return k == key })
	}
}

func TestAgreesWithNaiveQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		config := Config{
			PerKey: rapid.IntRange(1, 6).Draw(t, "per key"),
			Total:  rapid.IntRange(1, 12).Draw(t, "total"),
		}
		q := New[int](config)
		model := &naive{lines: map[string][]entry{}}
		var handles []*Handle

		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				key := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "key")
				weight := rapid.IntRange(0, 5).Draw(t, "weight")
				full := len(model.lines[key]) >= config.PerKey || model.len() >= config.Total
				handle, err := q.Push(key, weight, len(handles))
				if full != (err != nil) {
					t.Fatalf("push %s: %v, but full is %v", key, err, full)
				}
				if err != nil {
					return
				}
				if len(model.lines[key]) == 0 {
					model.keys = append(model.keys, key)
				}
				model.lines[key] = append(model.lines[key], entry{len(handles), weight})
				handles = append(handles, handle)
			},
			"take": func(t *rapid.T) {
				maxWeight := rapid.IntRange(0, 12).Draw(t, "max weight")
				if got, want := q.Take(maxWeight), model.take(maxWeight); !slices.Equal(got, want) {
					t.Fatalf("took %v, want %v", got, want)
				}
			},
			"cancel": func(t *rapid.T) {
				if len(handles) == 0 {
					return // the queue has had no item
				}
				id := rapid.IntRange(0, len(handles)-1).Draw(t, "id")
				if got, want := q.Cancel(handles[id]), model.cancel(id); got != want {
					t.Fatalf("cancel %d: %v, want %v", id, got, want)
				}
			},
			"": func(t *rapid.T) {
				if q.Len() != model.len() {
					t.Fatalf("%d items wait, want %d", q.Len(), model.len())
				}
				if len(q.keys) != len(model.keys) || q.order.Len() != len(model.keys) {
					t.Fatalf("%d queues and %d in order for %d keys with items", len(q.keys), q.order.Len(), len(model.keys))
				}
			},
		})
	})
}

// Every item leaves exactly once, taken or withdrawn, under concurrency.
func TestConcurrentUse(t *testing.T) {
	const writers, each = 8, 200
	q := New[int](Config{PerKey: each, Total: writers * each})
	var mu sync.Mutex
	left := make(map[int]int)
	leave := func(ids ...int) {
		mu.Lock()
		defer mu.Unlock()
		for _, id := range ids {
			left[id]++
		}
	}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				id := w*each + i
				handle, err := q.Push(string(rune('a'+w)), 1, id)
				if err != nil {
					t.Error(err)
					return
				}
				if i%3 == 0 && q.Cancel(handle) {
					leave(id)
				}
				if i%5 == 0 {
					leave(q.Take(3)...)
				}
			}
		})
	}
	wg.Wait()
	leave(q.Take(writers * each)...)
	for id := range writers * each {
		if left[id] != 1 {
			t.Errorf("item %d left %d times", id, left[id])
		}
	}
}
