package bench

import (
	"syscall"
	"time"
)

// sleepUntil returns at an instant, to within 0.1 ms if a processor is idle. A timer of Go would be
// up to a millisecond late: while the program is idle, it waits in epoll_wait(2), which counts in
// milliseconds. That would be most of the latency of a check.
func sleepUntil(at time.Time) {
	for d := time.Until(at); d > 0; d = time.Until(at) { // a signal ends a sleep early
		t := syscall.NsecToTimespec(d.Nanoseconds())
		_ = syscall.Nanosleep(&t, nil)
	}
}
