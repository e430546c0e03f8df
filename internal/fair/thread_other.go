//go:build !linux

package fair

import "time"

// onThread does work as it is: threads have no priorities of their own.
func onThread(work func()) { work() }

func setSlices(time.Duration) {}

func lengthenSlice() {}

func lowerPriority() {}

func bind() {}
