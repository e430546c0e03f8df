package fair

import (
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// BenchmarkWakeup measures how late a thread runs that is due every 0.5 ms beside heavy work on all processors: of
// the same priority, of a lower one, and of a lower one with the long time slice.
func BenchmarkWakeup(b *testing.B) {
	for _, of := range []struct {
		name  string
		lower func()
	}{
		{"same-priority", func() {}},
		{"lower-priority", lowerPriority},
		{"long-slice", func() {
			lowerPriority()
			lengthenSlice()
		}},
	} {
		b.Run(of.name, func(b *testing.B) {
			// The kernel, not Go, decides what runs.
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2*runtime.NumCPU() + 1))
			var ended atomic.Bool
			defer ended.Store(true)
			for range runtime.NumCPU() {
				go func() {
					runtime.LockOSThread() // the thread ends with the goroutine
					of.lower()
					for !ended.Load() {
					}
				}()
			}
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			var late []time.Duration
			due := time.Now()
			for b.Loop() {
				due = due.Add(500 * time.Microsecond) // also while it is late
				for d := time.Until(due); d > 0; d = time.Until(due) {
					t := syscall.NsecToTimespec(d.Nanoseconds())
					_ = syscall.Nanosleep(&t, nil)
				}
				late = append(late, time.Since(due))
			}
			slices.Sort(late)
			for _, percent := range []int{50, 99} {
				b.ReportMetric(float64(late[len(late)*percent/100].Microseconds()), fmt.Sprintf("p%d-µs", percent))
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}
