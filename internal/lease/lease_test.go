package lease

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Callers share a read, one that gets old is renewed before the term ends, and a lease that
// nobody holds reads nothing.
func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int64
		l := New(func(context.Context) error { reads.Add(1); time.Sleep(time.Millisecond); return nil })
		hold := func(want int64) {
			t.Helper()
			var callers sync.WaitGroup
			for range 10 {
				callers.Go(func() {
					if err := l.Hold(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			callers.Wait()
			time.Sleep(2 * time.Millisecond) // the renewal in the background
			if n := reads.Load(); n != want {
				t.Errorf("%d reads, want %d", n, want)
			}
		}
		hold(1)
		hold(1)
		time.Sleep(Term/2 + time.Millisecond)
		hold(2)
		hold(2)
		time.Sleep(time.Hour)
		hold(3)
		l.End()
		hold(4)
	})
}

// What was read is never older than the term.
func TestAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var began time.Time
		fail := false
		errRead := errors.New("no database")
		var mu sync.Mutex
		l := New(func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			if fail {
				return errRead
			}
			began = time.Now()
			return nil
		})
		for range 100 {
			if err := l.Hold(t.Context()); err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			if age := time.Since(began); age > Term {
				t.Errorf("the read began %v ago", age)
			}
			mu.Unlock()
			time.Sleep(Term / 7)
		}
		mu.Lock()
		fail = true
		mu.Unlock()
		time.Sleep(Term + 1)
		if err := l.Hold(t.Context()); !errors.Is(err, errRead) {
			t.Errorf("after a failed read: %v", err)
		}
	})
}

// A caller that gives up does not end the read for others.
func TestCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		l := New(func(ctx context.Context) error {
			select {
			case <-release:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		ctx, cancel := context.WithCancel(t.Context())
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { first <- l.Hold(ctx) }()
		go func() { second <- l.Hold(t.Context()) }()
		synctest.Wait()
		cancel()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Errorf("the canceled caller: %v", err)
		}
		close(release)
		if err := <-second; err != nil {
			t.Errorf("the other caller: %v", err)
		}
	})
}
