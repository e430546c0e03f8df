//go:build !linux

package fair

// withLowPriority does work as it is: threads have no priorities of their own.
func withLowPriority(work func()) { work() }
