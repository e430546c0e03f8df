package fair

import (
	"sync"
	"sync/atomic"
)

// Threads have a low priority, where the system has priorities of threads, so that the kernel
// prefers the threads of light requests to heavy work. On a busy machine such a thread still has a
// tenth of the time of another. Threads are safe for concurrent use.
type Threads struct {
	n       int
	prepare func() // is called on each thread first
	heavy   bool
	start   sync.Once
	used    atomic.Int64 // threads that have work, or will have it
	jobs    chan func()
	ended   <-chan struct{}
}

// NewThreads returns n threads, which exist from the first use on until ended is closed.
func NewThreads(n int, ended <-chan struct{}) *Threads {
	prepare := func() {
		lowerPriority()
		lengthenSlice()
	}
	return &Threads{n: n, prepare: prepare, jobs: make(chan func()), ended: ended}
}

// NewHeavyThreads returns threads as [NewThreads] does. On Linux they use the last half of the
// processors only, so that light requests find another one idle. See [CommitThread].
func NewHeavyThreads(n int, ended <-chan struct{}) *Threads {
	t := NewThreads(n, ended)
	lower := t.prepare
	t.heavy, t.prepare = true, func() {
		lower()
		bind()
	}
	return t
}

// Do does work on one of the threads, or on that of the caller if all have work. It returns when
// the work is done; a panic of the work is a panic of Do.
func (t *Threads) Do(work func()) {
	t.start.Do(t.begin)
	if t.used.Add(1) > int64(t.n) {
		t.used.Add(-1)
		work()
		return
	}
	var panicked any
	done := make(chan struct{})
	job := func() {
		defer close(done)
		defer t.used.Add(-1)
		defer func() { panicked = recover() }()
		if t.heavy {
			defer beginHeavy()()
		}
		work()
	}
	select {
	case t.jobs <- job: // at once, or when a thread whose work is done gets its turn
		<-done
	case <-t.ended:
		t.used.Add(-1)
		work()
	}
	if panicked != nil {
		panic(panicked)
	}
}

func (t *Threads) begin() {
	for range t.n {
		go onThread(func() {
			t.prepare()
			for {
				select {
				case job := <-t.jobs:
					job()
				case <-t.ended:
					return
				}
			}
		})
	}
}
