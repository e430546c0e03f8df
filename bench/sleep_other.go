//go:build !linux

package bench

import "time"

// sleepUntil returns at an instant or soon after.
func sleepUntil(at time.Time) { time.Sleep(time.Until(at)) }
