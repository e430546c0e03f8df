package fair

import (
	"sync"
	"testing"
)

// More work than there are places must not wait, and work may do other work on the threads.
func TestThreads(t *testing.T) {
	ended := make(chan struct{})
	th := NewThreads(2, ended)
	testThreads(t, th)
	close(ended)
	testThreads(t, th)
}

func testThreads(t *testing.T, th *Threads) {
	t.Helper()
	const n = 100
	var wg sync.WaitGroup
	done := make([]bool, n)
	for i := range n {
		wg.Go(func() {
			th.Do(func() {
				th.Do(func() { done[i] = true })
			})
		})
	}
	wg.Wait()
	for i, ok := range done {
		if !ok {
			t.Errorf("work %d is not done", i)
		}
	}
}

// A panic must reach the caller, and leave the threads as they were.
func TestThreadsAfterPanics(t *testing.T) {
	th := NewThreads(2, t.Context().Done())
	for range 5 {
		func() {
			defer func() {
				if got := recover(); got != "reason" {
					t.Errorf("the caller recovers %v", got)
				}
			}()
			th.Do(func() { panic("reason") })
		}()
	}
	testThreads(t, th)
}
