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

// A read that began before the end of a lease does not renew it, in the background or for a
// caller, and ends during a read do not delay its caller.
func TestEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var current, seen atomic.Int64
		const takes = 10 * time.Millisecond
		l := New(func(context.Context) error {
			read := current.Load()
			time.Sleep(takes)
			seen.Store(read)
			return nil
		})
		held := func(step string) {
			t.Helper()
			if err := l.Hold(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got, want := seen.Load(), current.Load(); got != want {
				t.Errorf("%s: holds %d, want %d", step, got, want)
			}
		}
		held("first")
		time.Sleep(Term/2 + time.Millisecond)
		held("renewed in the background")
		time.Sleep(takes / 2)
		current.Add(1)
		l.End()
		time.Sleep(takes) // the renewal has ended
		held("after the end")

		l.End()
		go func() { _ = l.Hold(t.Context()) }()
		time.Sleep(takes / 2)
		current.Add(1)
		l.End()
		held("joined a read from before the end")

		current.Add(1)
		time.Sleep(time.Millisecond)
		began := time.Now()
		go func() {
			for range 100 {
				l.End()
				time.Sleep(takes / 10)
			}
		}()
		if err := l.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 2*takes || seen.Load() != current.Load() {
			t.Errorf("renewed after %v with %d, want %d", took, seen.Load(), current.Load())
		}
		time.Sleep(200 * takes)
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
