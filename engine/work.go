package engine

import (
	"context"
	"errors"
	"time"

	"stonetown/internal/fair"
	"stonetown/internal/tracing"
)

// The work of a request is counted in steps of about 30 ns and has one budget
// ([Config.MaxVisits]), whatever it is spent on: visits to the graph, conditions,
// tuples read from the store, candidates of a list.
//
// Nearly all requests need few steps and are answered where they arrive. One that turns
// out to need more is given up, and then answered from the beginning when there is a
// place for heavy work. These places are fewer than the processors, so that checks find
// one free, and go to tenants in turn. Nothing is locked while a request waits for one.
// What a tenant's writes have to wait for is thus at most one budget.

// lightSteps is how many steps a request may take without a place for heavy work: less
// than a millisecond.
const lightSteps = 1 << 14

// pollEvery is how many steps lie between two looks at the context.
const pollEvery = 512

// limits bound one attempt at a request.
type limits struct {
	most  int // steps of the request
	heavy bool
}

// now is how many steps the attempt may take.
func (l limits) now() int {
	if l.heavy {
		return l.most
	}
	return min(l.most, lightSteps)
}

// stepsToList is the cost of storing a candidate of a list and of sorting it.
const stepsToList = 8

// listed charges for a new candidate of a list. The last attempt is not charged, so that
// the longest list that the budget allows stays as long as it was.
func (e *evaluation) listed() {
	if e.limits.now() < e.limits.most {
		e.budget -= stepsToList
	}
}

// exceeded is the error of an attempt that took all of its steps, onTerms of them for
// conditions.
func (l limits) exceeded(onTerms int) error {
	if l.now() < l.most {
		return errHeavy
	}
	return &BudgetError{Limit: l.most, OnConditions: onTerms}
}

// errHeavy: the request needs a place for heavy work.
var errHeavy = errors.New("request needs more work than can be done at once")

func newHeavyGate() *fair.Gate {
	return fair.NewGate("complex requests", fair.Limits{Service: int64(fair.HeavyPlaces())},
		fair.Queue{Waiting: 2000, WaitingOfTenant: 64, WaitingOfCaller: 32, Patience: 5 * time.Second})
}

// attempt answers a request, in a second attempt if it is heavy.
func (e *Engine) attempt(ctx context.Context, tenantID string, try func(limits) error) error {
	err := try(limits{most: e.maxVisits})
	if errors.Is(err, errHeavy) {
		err = e.attemptHeavy(ctx, tenantID, try)
	}
	return err
}

// attemptHeavy answers a request when there is a place for heavy work. It fails with
// [*fair.ExhaustedError] if too many wait.
func (e *Engine) attemptHeavy(ctx context.Context, tenantID string, try func(limits) error) error {
	return fair.Aside(ctx, func() error {
		_, waiting := tracing.Start(ctx, "engine.wait_for_heavy_place")
		place, err := e.heavy.Enter(ctx, fair.Caller{Tenant: tenantID, ID: fair.From(ctx).Caller.ID})
		waiting.End(err)
		if err != nil {
			return err
		}
		defer place.Leave()
		return try(limits{most: e.maxVisits, heavy: true})
	})
}
