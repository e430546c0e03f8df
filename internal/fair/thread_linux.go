package fair

import (
	"os"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// niceness is how much nicer a thread of low priority is: the kernel gives it a tenth of the
	// time of another.
	niceness = 10
	// longSlice is the time slice of threads for heavy work and commits, the longest that Linux has. A
	// thread that wakes up runs at once if its slice is shorter than that of the other. Otherwise it
	// waits until the other has had its slice, which is milliseconds by default. The share of the time
	// does not depend on the slice. Versions before 6.12 ignore it.
	longSlice = 100 * time.Millisecond
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

// setSlices gives all threads of the program a time slice, but those with a long one. New threads
// inherit it. The slice 0 is the default. light.mu must be held.
func setSlices(slice time.Duration) {
	for range 2 { // a thread may begin another before it has the slice
		threads, _ := os.ReadDir("/proc/self/task")
		for _, t := range threads {
			id, err := strconv.Atoi(t.Name())
			if err != nil {
				continue
			}
			change(id, func(a *unix.SchedAttr) {
				if a.Policy == unix.SCHED_NORMAL && a.Runtime != uint64(longSlice) {
					a.Runtime = uint64(slice)
				}
			})
		}
	}
}

// lengthenSlice gives the thread a long time slice.
func lengthenSlice() {
	light.mu.Lock() // setSlices may be about to change the thread
	defer light.mu.Unlock()
	change(0, func(a *unix.SchedAttr) { a.Runtime = uint64(longSlice) })
}

// lowerPriority lowers the priority of the thread. Linux has one for each thread (see
// sched_setattr(2)).
func lowerPriority() {
	light.mu.Lock()
	defer light.mu.Unlock()
	change(0, func(a *unix.SchedAttr) { a.Nice = min(19, a.Nice+niceness) })
}

// change changes how the kernel schedules a thread; 0 is that of the caller. A thread that cannot be
// changed is used as it is.
func change(thread int, how func(*unix.SchedAttr)) {
	if a, err := unix.SchedGetAttr(thread, 0); err == nil {
		how(a)
		_ = unix.SchedSetAttr(thread, a, 0)
	}
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
