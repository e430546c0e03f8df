//go:build !linux

package fair

// onThread does work as it is: threads have no priorities of their own.
func onThread(work func()) { work() }

func lowerPriority() {}

func bind() {}
