package engine

import (
	"context"
	"errors"
	"time"

	"stonetown/engine/internal/work"
	"stonetown/internal/fair"
	"stonetown/internal/tracing"
)

// A heavy request is attempted again when a place for heavy work is free. There are fewer
// of these places than processors, so that checks find a free processor, and a fair queue
// assigns them to tenants. It is made on a thread of low priority, so that checks come first
// if no processor is free. Neither a queued request nor a heavy attempt, which pins the graph,
// holds a lock, so that a tenant's write waits for light attempts at most.

func newHeavyGate() *fair.Gate {
	return fair.NewGate("complex requests", fair.Limits{Service: int64(fair.HeavyPlaces())},
		fair.Queue{Waiting: 2000, WaitingOfTenant: 64, WaitingOfCaller: 32, Patience: 5 * time.Second})
}

// limits returns the limits of a light attempt.
func (e *Engine) limits() work.Limits { return work.Limits{Most: min(e.maxVisits, e.meter.left())} }

// Heavy does the work of a request as attemptHeavy does, when a place for heavy work is free.
func (e *Engine) Heavy(ctx context.Context, tenantID string, do func() error) error {
	return e.attemptHeavy(ctx, tenantID, func(work.Limits) error { return do() })
}

// attempt answers a request, in a second attempt if it is heavy.
func (e *Engine) attempt(ctx context.Context, tenantID string, try func(work.Limits) error) error {
	err := try(e.limits())
	if errors.Is(err, work.ErrHeavy) {
		err = e.attemptHeavy(ctx, tenantID, try)
	}
	return err
}

// attemptHeavy answers a request when a place for heavy work is free. It fails with
// [*fair.ExhaustedError] if the queue is full.
func (e *Engine) attemptHeavy(ctx context.Context, tenantID string, try func(work.Limits) error) error {
	return within(ctx, e.heavy, tenantID, "engine.wait_for_heavy_place", func() error {
		l := e.limits()
		l.Heavy = true
		var err error
		e.heavyThreads.Do(func() { err = try(l) })
		return err
	})
}

// Plans read tuples to count them, which takes no visits and seconds if there are many. They
// have places of their own, so that they delay neither heavy requests nor each other's tenants.

func newCountGate() *fair.Gate {
	return fair.NewGate("plans that count relations", fair.Limits{Service: 2, Tenant: 1},
		fair.Queue{Waiting: 100, WaitingOfTenant: 8, WaitingOfCaller: 4, Patience: 10 * time.Second})
}

// within does work in a place of a gate, while the request holds no other place.
func within(ctx context.Context, g *fair.Gate, tenantID, wait string, do func() error) error {
	return fair.Aside(ctx, func() error {
		_, waiting := tracing.Start(ctx, wait)
		place, err := g.Enter(ctx, fair.Caller{Tenant: tenantID, ID: fair.From(ctx).Caller.ID})
		waiting.End(err)
		if err != nil {
			return err
		}
		defer place.Leave()
		return do()
	})
}
