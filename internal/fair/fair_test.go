package fair_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"stonetown/internal/fair"
)

func exhausted(t *testing.T, err error, share fair.Share, limit int64) {
	t.Helper()
	if e, ok := errors.AsType[*fair.ExhaustedError](err); !ok || e.Share != share || e.Limit != limit {
		t.Errorf("got %v, want the share of the %s, %d, to be exhausted", err, share, limit)
	}
}

func TestShares(t *testing.T) {
	s := fair.NewShares("places", fair.Limits{Service: 10, Tenant: 6, Caller: 4})
	ann, bob := fair.Caller{Tenant: "a", ID: "ann"}, fair.Caller{Tenant: "a", ID: "bob"}
	other := fair.Caller{Tenant: "b", ID: "ann"}
	for _, step := range []struct {
		caller fair.Caller
		n      int64
		share  fair.Share
		limit  int64
	}{
		{ann, 4, "", 0},
		{ann, 1, fair.OfCaller, 4},
		{bob, 3, fair.OfTenant, 6},
		{bob, 2, "", 0},
		{other, 4, "", 0},
		{fair.Caller{Tenant: "c"}, 1, fair.OfService, 10},
		{bob, -1, "", 0},
		{fair.Caller{Tenant: "c"}, 1, "", 0},
	} {
		var err error
		if step.n < 0 {
			s.Give(step.caller, -step.n)
		} else {
			err = s.Take(step.caller, step.n)
		}
		if step.share != "" {
			exhausted(t, err, step.share, step.limit)
		} else if err != nil {
			t.Errorf("%v takes %d: %v", step.caller, step.n, err)
		}
	}
}

// Places are given to tenants in turn and within a tenant to callers in turn, even if a caller
// has requests that were queued before.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := fair.NewGate("places", fair.Limits{Service: 1}, fair.Queue{})
		first, err := g.Enter(t.Context(), fair.Caller{Tenant: "x"})
		if err != nil {
			t.Fatal(err)
		}
		var order []string
		var wg sync.WaitGroup
		wait := func(tenant, caller string) {
			wg.Go(func() {
				p, err := g.Enter(t.Context(), fair.Caller{Tenant: tenant, ID: caller})
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, tenant+caller)
				time.Sleep(time.Second)
				p.Leave()
			})
			synctest.Wait()
		}
		for range 4 {
			wait("a", "1")
		}
		wait("a", "2")
		wait("b", "1")
		wait("b", "1")
		first.Leave()
		wg.Wait()
		if got := fmt.Sprint(order); got != "[a1 b1 a2 b1 a1 a1 a1]" {
			t.Error(got)
		}
	})
}

// Requests of a tenant or caller without a share stay queued while others are admitted.
func TestOthersPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := fair.NewGate("places", fair.Limits{Service: 4, Tenant: 2, Caller: 1}, fair.Queue{})
		var wg sync.WaitGroup
		var mu sync.Mutex
		inside := map[fair.Caller]int{}
		hold := make(chan struct{})
		for _, c := range []fair.Caller{{"a", "1"}, {"a", "1"}, {"a", "2"}, {"a", "3"}, {"b", "1"}, {"b", "1"}, {"c", "1"}, {"d", "1"}} {
			wg.Go(func() {
				p, err := g.Enter(t.Context(), c)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				inside[c]++
				mu.Unlock()
				<-hold
				p.Leave()
			})
			synctest.Wait()
		}
		mu.Lock()
		got := fmt.Sprint(inside)
		mu.Unlock()
		if got != "map[{a 1}:1 {a 2}:1 {b 1}:1 {c 1}:1]" {
			t.Error(got)
		}
		close(hold)
		wg.Wait() // all were admitted
	})
}

func TestBoundedQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := fair.NewGate("places", fair.Limits{Service: 1}, fair.Queue{Waiting: 3, WaitingOfTenant: 2, WaitingOfCaller: 1, Patience: 10 * time.Second})
		var wg sync.WaitGroup
		defer wg.Wait()
		enter := func(ctx context.Context, tenant, caller string, hold time.Duration) {
			wg.Go(func() {
				if p, err := g.Enter(ctx, fair.Caller{Tenant: tenant, ID: caller}); err == nil {
					time.Sleep(hold)
					p.Leave()
				}
			})
			synctest.Wait()
		}
		ctx, cancel := context.WithCancel(t.Context())
		enter(t.Context(), "a", "", 5*time.Second)
		enter(t.Context(), "a", "1", time.Second)
		_, err := g.Enter(t.Context(), fair.Caller{Tenant: "a", ID: "1"})
		exhausted(t, err, fair.OfCaller, 1)
		enter(ctx, "a", "2", time.Second)
		_, err = g.Enter(t.Context(), fair.Caller{Tenant: "a"})
		exhausted(t, err, fair.OfTenant, 2)
		enter(t.Context(), "b", "1", time.Second)
		_, err = g.Enter(t.Context(), fair.Caller{Tenant: "c"})
		exhausted(t, err, fair.OfService, 3)
		cancel() // makes room
		synctest.Wait()
		enter(t.Context(), "a", "2", time.Second)
		r := fair.Request{Caller: fair.Caller{Tenant: "a"}, Patient: true} // however many wait
		p, err := r.Wait(t.Context(), g)
		if err != nil {
			t.Fatal(err)
		}
		p.Leave()
	})
}

// A request whose expected wait exceeds the patience is refused at once; one whose wait was
// underestimated is refused when the patience ends.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := fair.NewGate("places", fair.Limits{Service: 1}, fair.Queue{Patience: 2 * time.Second})
		hold := func(d time.Duration) {
			p, err := g.Enter(t.Context(), fair.Caller{})
			if err != nil {
				t.Error(err)
				return
			}
			time.Sleep(d)
			p.Leave()
		}
		var wg sync.WaitGroup
		wg.Go(func() { hold(time.Minute) })
		synctest.Wait()
		began := time.Now()
		_, err := g.Enter(t.Context(), fair.Caller{})
		exhausted(t, err, fair.OfService, 1)
		if waited := time.Since(began); waited != 2*time.Second {
			t.Errorf("waited %v", waited)
		}
		wg.Wait() // now it is known how long a place is held
		wg.Go(func() { hold(time.Minute) })
		synctest.Wait()
		began = time.Now()
		_, err = g.Enter(t.Context(), fair.Caller{})
		if e, ok := errors.AsType[*fair.ExhaustedError](err); !ok || time.Since(began) != 0 || e.RetryAfter < 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		wg.Wait()
	})
}

// A request that waits at another gate holds no place meanwhile.
func TestAside(t *testing.T) {
	g := fair.NewGate("places", fair.Limits{Service: 1}, fair.Queue{})
	r := &fair.Request{Caller: fair.Caller{Tenant: "a"}}
	ctx := fair.NewContext(t.Context(), r)
	if err := r.Enter(ctx, g); err != nil {
		t.Fatal(err)
	}
	err := fair.Aside(ctx, func() error {
		p, err := g.Enter(t.Context(), fair.Caller{Tenant: "b"})
		if err == nil {
			p.Leave()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.Enter(ended, fair.Caller{Tenant: "b"}); !errors.Is(err, context.Canceled) {
		t.Errorf("the request does not have its place again: %v", err)
	}
	failed := errors.New("failed")
	if err := fair.Aside(ctx, func() error { return failed }); err != failed {
		t.Error(err)
	}
	r.Leave() // and holds none after a failure
	if p, err := g.Enter(t.Context(), fair.Caller{}); err != nil {
		t.Error(err)
	} else {
		p.Leave()
	}
	if err := fair.Aside(t.Context(), func() error { return nil }); err != nil { // outside of requests
		t.Error(err)
	}
}

func BenchmarkGate(b *testing.B) {
	g := fair.NewGate("places", fair.Limits{Service: 256, Tenant: 128, Caller: 64}, fair.Queue{})
	c := fair.Caller{Tenant: "tnt_01", ID: "app_01"}
	b.ReportAllocs()
	for b.Loop() {
		p, _ := g.Enter(b.Context(), c)
		p.Leave()
	}
}
