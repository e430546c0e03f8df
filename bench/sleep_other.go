//go:build !linux

package bench

import "time"

// sleeper returns at an instant or soon after.
type sleeper struct{}

func newSleeper() (sleeper, error) { return sleeper{}, nil }

func (sleeper) until(at time.Time) error {
	time.Sleep(time.Until(at))
	return nil
}

func (sleeper) close() {}
