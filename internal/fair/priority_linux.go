package fair

import (
	"runtime"
	"syscall"
)

// niceness is how much nicer a thread of low priority is: the kernel gives it a tenth of the time
// of another.
const niceness = 10

// lowerPriority makes the goroutine run on a thread of its own, with low priority. Linux has a
// priority for each thread (see setpriority(2)). A thread that cannot have a lower one is used as
// it is.
func lowerPriority() {
	runtime.LockOSThread()
	if own, err := ownNiceness(); err == nil {
		_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, own+niceness) // above 19 means 19
	}
}

// ownNiceness returns the niceness of the calling thread.
func ownNiceness() (int, error) {
	priority, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
	return 20 - priority, err // the system call has no negative results
}
