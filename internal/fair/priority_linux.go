package fair

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// niceness is how much nicer a thread of low priority is: the kernel gives it a tenth of the
	// time of another.
	niceness = 10
	// slice is the time slice of a thread of low priority, the longest that Linux has. A thread
	// that wakes up and has a shorter slice runs at once; otherwise it would wait until the other
	// has had a part of its slice, which takes milliseconds. The share of the time does not depend
	// on the slice. Versions before 6.12 ignore it.
	slice = 100 * time.Millisecond
)

// withLowPriority does work on a thread of its own, with low priority. Linux has a priority for each
// thread (see sched_setattr(2)). A thread that cannot have a lower one is used as it is.
func withLowPriority(work func()) {
	runtime.LockOSThread()
	if unix.Gettid() != unix.Getpid() {
		lowerPriority()
		work()
		return
	}
	// A signal to the process is for the main thread first, and must not wait until that has its turn.
	// While it is locked here, the other goroutine is on another thread.
	locked := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		close(locked)
		lowerPriority()
		work()
	}()
	<-locked
	runtime.UnlockOSThread()
}

func lowerPriority() {
	a, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return
	}
	a.Nice = min(19, a.Nice+niceness)
	a.Runtime = uint64(slice)
	_ = unix.SchedSetAttr(0, a, 0)
}
