package fair

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// Commits are bound to the processors of heavy work while there is any, and leave the others to
// light requests.
func TestCommitThread(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	all := affinity(t)
	if all.Count() < 2 {
		t.Skip("there is one processor")
	}
	heavyEnded.Store(0) // of other tests
	ended := t.Context().Done()
	commits, threads := NewCommitThread(ended), NewHeavyThreads(1, ended)
	placed := func() (thread int, on unix.CPUSet) {
		commits.recent = duty{} // a busy machine can make it long
		commits.Do(func() { thread, on = unix.Gettid(), affinity(t) })
		return thread, on
	}

	if thread, on := placed(); thread != unix.Gettid() || on != all {
		t.Errorf("without heavy work a commit is on thread %d and processors %v, not those of its caller", thread, on)
	}
	threads.begin()
	started, finish := make(chan unix.CPUSet), make(chan struct{})
	go threads.Do(func() {
		started <- affinity(t)
		<-finish
	})
	half := <-started
	if want := max(1, all.Count()/2); half.Count() != want || half.IsSet(first(all)) {
		t.Errorf("heavy work has the processors %v, want the last %d of %v", half, want, all)
	}
	thread, on := placed()
	if thread == unix.Gettid() || on != half {
		t.Errorf("beside heavy work a commit is on processors %v, want %v", on, half)
	}
	if normal := priority(t).Runtime; normal > 0 {
		commits.recent = duty{}
		commits.Do(func() {
			if got := priority(t).Runtime; got != uint64(longSlice) {
				t.Errorf("beside heavy work a commit has a slice of %d ns, want %d", got, longSlice)
			}
		})
	}
	var inner int
	commits.recent = duty{}
	commits.Do(func() { commits.Do(func() { inner = unix.Gettid() }) })
	if inner != thread {
		t.Errorf("a commit in one is on thread %d, want %d", inner, thread)
	}
	commits.recent.percent = maxDuty
	commits.Do(func() { inner = unix.Gettid() })
	if inner != unix.Gettid() {
		t.Error("commits that take most of the time are on the processors of heavy work")
	}
	close(finish)
	for heavy.Load() > 0 {
		runtime.Gosched()
	}
	if _, on := placed(); on != half {
		t.Errorf("just after heavy work a commit is on processors %v, want %v", on, half)
	}
	heavyEnded.Add(-int64(lately))
	if thread, on := placed(); thread != unix.Gettid() || on != all {
		t.Errorf("after heavy work a commit is on thread %d and processors %v, not those of its caller", thread, on)
	}
}

func affinity(t *testing.T) (set unix.CPUSet) {
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Error(err)
	}
	return set
}

// first returns the number of the first processor of a set.
func first(set unix.CPUSet) int {
	n := 0
	for !set.IsSet(n) {
		n++
	}
	return n
}
