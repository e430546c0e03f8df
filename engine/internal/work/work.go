// Package work counts and limits the work of requests.
//
// The work of a request is counted in steps of about 30 ns and has one budget, for visits to
// the graph, conditions, tuples read from the store and candidates of a list alike.
//
// Nearly all requests take few steps and are answered at once. An attempt that takes more
// than [LightSteps] fails with [ErrHeavy]. The request is then attempted again as heavy,
// with all of its budget, when a place for heavy work is free.
package work

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
)

// LightSteps is the number of steps that an attempt may take without a place for heavy
// work: less than a millisecond.
const LightSteps = 1 << 14

// pollEvery is the number of steps between two checks of the context. A heavy attempt yields its
// processor at every pollsToYield-th of them, after a quarter of a millisecond: seldom, because a
// goroutine that has a thread of its own (see package fair) yields by two changes of threads.
const pollEvery, pollsToYield = 512, 16

// Steps that work other than visits to the graph takes.
const (
	stepsToRead = 4   // a tuple read from the store
	stepsToList = 8   // storing and sorting a candidate of a list
	StepsToShow = 15  // storing and sending a node of an expansion, or a step of a proof
	StepsToAsk  = 500 // a read of the store, besides the tuples that it finds
)

// ErrHeavy is the error of an attempt that needs a place for heavy work.
var ErrHeavy = errors.New("request exceeds the steps of a light attempt")

// BudgetError is the error of a request that exceeds its budget.
type BudgetError struct {
	Limit        int // in steps
	OnConditions int // the steps that conditions took
}

// Spent names the part of the work that took most of the budget: conditions or graph.
func (e *BudgetError) Spent() string {
	if e.OnConditions > e.Limit/2 {
		return "conditions"
	}
	return "graph"
}

func (e *BudgetError) Error() string {
	if e.Spent() == "conditions" {
		return fmt.Sprintf("the conditions of the request cost more than %d steps", e.Limit)
	}
	return fmt.Sprintf("the request needs more than %d graph visits", e.Limit)
}

// Limits bound one attempt at a request.
type Limits struct {
	Most  int // steps of the request
	Heavy bool
}

// steps returns the number of steps that the attempt may take.
func (l Limits) steps() int {
	if l.Heavy {
		return l.Most
	}
	return min(l.Most, LightSteps)
}

// HasRetry reports whether a heavy attempt follows if this one takes all of its steps.
func (l Limits) HasRetry() bool { return l.steps() < l.Most }

// Budget is the steps that are left of one attempt.
type Budget struct {
	ctx          context.Context
	limits       Limits
	left         int
	poll         int   // the value of left at which the limits are checked next
	polls        int   // how often they have been checked
	onConditions int   // steps that conditions took
	ended        error // why the work has to end, or nil
}

// NewBudget returns the budget of one attempt, which ends with the context too.
func NewBudget(ctx context.Context, l Limits) Budget {
	return Budget{ctx: ctx, limits: l, left: l.steps(), poll: l.steps()}
}

// Spent returns the number of steps that the attempt has taken.
func (b *Budget) Spent() int { return b.limits.steps() - b.left }

// Step counts one step.
func (b *Budget) Step() { b.left-- }

// Spend counts many steps.
func (b *Budget) Spend(steps int) { b.left -= steps }

// SpendOnConditions counts steps that conditions took.
func (b *Budget) SpendOnConditions(steps int) {
	b.left -= steps
	b.onConditions += steps
}

// SpendOnReading counts tuples read from the store.
func (b *Budget) SpendOnReading(tuples int) { b.left -= stepsToRead * tuples }

// SpendOnListing counts a new candidate of a list. The last attempt does not count
// candidates, so that they do not shorten the longest list that the budget allows.
func (b *Budget) SpendOnListing() {
	if b.limits.HasRetry() {
		b.left -= stepsToList
	}
}

// HasRetry reports whether a heavy attempt follows if this one takes all of its steps.
func (b *Budget) HasRetry() bool { return b.limits.HasRetry() }

// Err returns an error if the work has to end: the budget is used up or the context has
// ended. Every loop over tuples checks it, because there may be millions of them.
func (b *Budget) Err() error {
	if b.left > b.poll {
		return nil
	}
	return b.check()
}

// check is the part of Err that is rarely needed.
func (b *Budget) check() error {
	switch {
	case b.ended != nil:
	case b.left < 0:
		b.ended = b.exceeded()
	default:
		b.ended = b.ctx.Err()
	}
	if b.ended != nil {
		b.poll = math.MaxInt
		return b.ended
	}
	b.poll = max(b.left-pollEvery, -1)
	if b.limits.Heavy {
		b.polls++
		if b.polls%pollsToYield == 0 {
			runtime.Gosched() // checks may be ready to run
		}
	}
	return nil
}

func (b *Budget) exceeded() error {
	if b.limits.HasRetry() {
		return ErrHeavy
	}
	return &BudgetError{Limit: b.limits.Most, OnConditions: b.onConditions}
}
