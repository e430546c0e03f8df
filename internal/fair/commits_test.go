package fair

import (
	"testing"
	"time"
)

// The duty is that of the last window, which is longer if nothing was added for a while.
func TestDuty(t *testing.T) {
	var d duty
	now := time.Now()
	add := func(pause, took time.Duration, want int) {
		t.Helper()
		from := now.Add(pause)
		now = from.Add(took)
		d.add(from, now)
		if d.percent != want {
			t.Errorf("the duty is %d %%, want %d", d.percent, want)
		}
	}
	add(0, 10*time.Millisecond, 0)
	for range 3 {
		add(20*time.Millisecond, 10*time.Millisecond, 0)
	}
	add(0, 10*time.Millisecond, 40) // of 100 ms
	add(0, 99*time.Millisecond, 40)
	add(0, time.Millisecond, 100)
	add(time.Second-10*time.Millisecond, 10*time.Millisecond, 1)
}
