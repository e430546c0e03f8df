package fair

import (
	"runtime"
	"testing"
)

// Threads have a low priority, and that of the caller stays.
func TestThreadPriority(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := priority(t)
	th := NewThreads(1, t.Context().Done())
	th.begin()
	seen := make(chan int)
	th.jobs <- func() { seen <- priority(t) } // waits for a free thread
	if got, want := <-seen, min(19, before+niceness); got != want {
		t.Errorf("the work has niceness %d, want %d", got, want)
	}
	if after := priority(t); after != before {
		t.Errorf("the niceness of the caller was %d, and is %d", before, after)
	}
}

func priority(t *testing.T) int {
	p, err := ownNiceness()
	if err != nil {
		t.Error(err)
	}
	return p
}
