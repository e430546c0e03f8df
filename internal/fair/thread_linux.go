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

// onThread does work on a thread that ends with it. It is not the main thread.
func onThread(work func()) {
	runtime.LockOSThread()
	if unix.Gettid() != unix.Getpid() {
		work()
		return
	}
	// A signal to the process is for the main thread first, and must not wait until that has its turn.
	// While it is locked here, the other goroutine is on another thread.
	locked := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		close(locked)
		work()
	}()
	<-locked
	runtime.UnlockOSThread()
}

// lowerPriority lowers the priority of the thread. Linux has one for each thread (see
// sched_setattr(2)). A thread that cannot have a lower one is used as it is.
func lowerPriority() {
	a, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return
	}
	a.Nice = min(19, a.Nice+niceness)
	a.Runtime = uint64(slice)
	_ = unix.SchedSetAttr(0, a, 0)
}

// bind binds the thread to the last half of the processors that it may use, if there are several.
func bind() {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return
	}
	for n, more := 0, set.Count()-max(1, set.Count()/2); more > 0; n++ {
		if set.IsSet(n) {
			set.Clear(n)
			more--
		}
	}
	_ = unix.SchedSetaffinity(0, &set)
}
