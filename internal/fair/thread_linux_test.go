package fair

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Threads have a low priority and a long slice, and those of the caller stay.
func TestThreadPriority(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := priority(t)
	th := NewThreads(1, t.Context().Done())
	th.begin()
	seen := make(chan unix.SchedAttr)
	th.jobs <- func() { seen <- priority(t) } // waits for a free thread
	got := <-seen
	if want := min(19, before.Nice+niceness); got.Nice != want {
		t.Errorf("the work has niceness %d, want %d", got.Nice, want)
	}
	if hasSlices := before.Runtime > 0; hasSlices && got.Runtime != uint64(longSlice) {
		t.Errorf("the work has a slice of %d ns, want %d", got.Runtime, longSlice)
	}
	if after := priority(t); after != before {
		t.Errorf("the caller had %+v, and has %+v", before, after)
	}
}

// Beside heavy work, all other threads have short slices, later ones too. Afterwards they have the
// default.
func TestShortSlices(t *testing.T) {
	restored := func() {
		t.Helper()
		short := func() bool {
			light.mu.Lock() // is held while they are restored
			defer light.mu.Unlock()
			return light.short.Load()
		}
		for deadline := time.Now().Add(10 * time.Second); short(); time.Sleep(lately / 10) {
			if time.Now().After(deadline) {
				t.Fatal("the slices are still short")
			}
		}
	}
	restored() // after other tests
	normal := slicesOf(t, 1)[0]
	if normal == 0 {
		t.Skip("this kernel has no slices of threads")
	}
	expect := func(when string, want uint64) {
		t.Helper()
		for _, got := range slicesOf(t, 20) {
			if got != want {
				t.Errorf("%s a thread has a slice of %d ns, want %d", when, got, want)
			}
		}
	}
	threads := NewHeavyThreads(1, t.Context().Done())
	light.mayBeShort.Store(false)
	threads.Do(func() { expect("with the database elsewhere", normal) })
	NewCommitThread(t.Context().Done())
	threads.Do(func() {
		if got := priority(t).Runtime; got != uint64(longSlice) {
			t.Errorf("heavy work has a slice of %d ns, want %d", got, longSlice)
		}
		expect("beside heavy work", uint64(shortSlice))
	})
	restored()
	expect("after heavy work", normal)
}

// slicesOf returns the time slices of n threads, some of them new.
func slicesOf(t *testing.T, n int) (of []uint64) {
	got := make(chan uint64)
	for range n {
		go func() {
			runtime.LockOSThread() // the thread ends with the goroutine
			got <- priority(t).Runtime
		}()
	}
	for range n {
		of = append(of, <-got)
	}
	return of
}

func priority(t *testing.T) unix.SchedAttr {
	a, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	return *a
}

// Signals to the process are for its main thread, which keeps its priority.
func TestMainThreadKeepsItsPriority(t *testing.T) {
	for range 50 {
		seen := make(chan int)
		th := NewThreads(4, t.Context().Done())
		th.begin()
		for range 4 {
			th.jobs <- func() { seen <- unix.Gettid() }
		}
		for range 4 {
			if id := <-seen; id == unix.Getpid() {
				t.Fatal("heavy work is on the main thread")
			}
		}
	}
}

// Work that waits for a place starts as soon as the work before it ends, and has the thread too.
func TestThreadsInTurn(t *testing.T) {
	ended := make(chan struct{})
	defer close(ended)
	th := NewThreads(1, ended)
	var place sync.Mutex
	var callers sync.WaitGroup
	used := map[int]int{} // place is held
	for range 4 {
		callers.Go(func() {
			for range 500 {
				place.Lock()
				th.Do(func() { used[unix.Gettid()]++ })
				place.Unlock()
			}
		})
	}
	callers.Wait()
	if len(used) != 1 {
		t.Errorf("work was on several threads, by number: %v", used)
	}
}
