package engine

import (
	"math"
	"sync/atomic"
)

// Meter is a budget of steps that all requests of an engine share (see [Config.MaxVisits]). Each
// request is limited to what is left when it begins.
type Meter struct{ steps atomic.Int64 }

// NewMeter returns a meter of some steps.
func NewMeter(steps int) *Meter {
	m := new(Meter)
	m.steps.Store(int64(steps))
	return m
}

// Spend takes steps for other work.
func (m *Meter) Spend(steps int) {
	if m != nil {
		m.steps.Add(-int64(steps))
	}
}

// Empty reports whether no steps are left.
func (m *Meter) Empty() bool { return m.left() == 0 }

func (m *Meter) left() int {
	if m == nil {
		return math.MaxInt
	}
	return int(max(0, m.steps.Load()))
}
