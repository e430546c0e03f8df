//go:build !linux

package fair

// lowerPriority does nothing: threads have no priorities of their own.
func lowerPriority() {}
