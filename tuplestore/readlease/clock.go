package readlease

import "time"

// Instant is a reading of the monotonic clock of one process: the time since some start. Those of
// different processes cannot be compared.
type Instant time.Duration

// Add returns the instant after a duration.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// Clock is the monotonic clock of a process.
type Clock interface {
	Now() Instant
	// After returns a channel that receives a value after a duration by this clock.
	After(time.Duration) <-chan time.Time
}

// Machine is the clock of this machine.
type Machine struct{}

var start = time.Now()

// Now implements [Clock].
func (Machine) Now() Instant { return Instant(time.Since(start)) }

// After implements [Clock].
func (Machine) After(d time.Duration) <-chan time.Time { return time.After(d) }

// Drifting is a clock that runs at a rate other than 1, so that tests show what drift does.
type Drifting float64

// Now implements [Clock].
func (d Drifting) Now() Instant { return Instant(float64(Machine{}.Now()) * float64(d)) }

// After implements [Clock].
func (d Drifting) After(t time.Duration) <-chan time.Time {
	return time.After(time.Duration(float64(t) / float64(d)))
}
