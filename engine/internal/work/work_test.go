package work

import (
	"context"
	"errors"
	"testing"
)

// spend takes steps until the budget ends.
func spend(b *Budget) (steps int, err error) {
	for ; err == nil; steps++ {
		b.Step()
		err = b.Err()
	}
	return steps, err
}

func TestBudgetEndsAfterItsSteps(t *testing.T) {
	for _, test := range []struct {
		limits   Limits
		steps    int
		exceeded bool // otherwise a heavy attempt follows
	}{
		{Limits{Most: 100}, 101, true},
		{Limits{Most: LightSteps}, LightSteps + 1, true},
		{Limits{Most: LightSteps + 1}, LightSteps + 1, false},
		{Limits{Most: 3 * LightSteps, Heavy: true}, 3*LightSteps + 1, true},
	} {
		b := NewBudget(context.Background(), test.limits)
		steps, err := spend(&b)
		budget, exceeded := errors.AsType[*BudgetError](err)
		if steps != test.steps || exceeded != test.exceeded || !exceeded && !errors.Is(err, ErrHeavy) {
			t.Errorf("%+v: %v after %d steps, want it after %d", test.limits, err, steps, test.steps)
		}
		if exceeded && (budget.Limit != test.limits.Most || budget.Spent() != "graph") {
			t.Errorf("%+v: %+v", test.limits, budget)
		}
		if again := b.Err(); !errors.Is(again, err) {
			t.Errorf("%+v: the error changed to %v", test.limits, again)
		}
	}
}

func TestBudgetEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	b := NewBudget(ctx, Limits{Most: 1 << 40, Heavy: true})
	for range 10 * pollEvery {
		if b.Step(); b.Err() != nil {
			t.Fatal(b.Err())
		}
	}
	cancel()
	if steps, err := spend(&b); !errors.Is(err, context.Canceled) || steps > pollEvery+1 {
		t.Errorf("%v after %d steps", err, steps)
	}
}

func TestBudgetErrorNamesTheLargerPart(t *testing.T) {
	for onConditions, want := range map[int]string{10: "graph", 90: "conditions"} {
		b := NewBudget(context.Background(), Limits{Most: 100})
		b.SpendOnConditions(onConditions)
		b.Spend(101 - onConditions)
		budget, ok := errors.AsType[*BudgetError](b.Err())
		if !ok || budget.Spent() != want || budget.OnConditions != onConditions {
			t.Errorf("%d steps on conditions: %+v, want %s", onConditions, budget, want)
		}
	}
}

// The last attempt is not charged for candidates, so that the longest list stays as long.
func TestOnlyLightAttemptsAreChargedForCandidates(t *testing.T) {
	for _, test := range []struct {
		limits Limits
		want   int
	}{{Limits{Most: 1 << 20}, LightSteps - stepsToList}, {Limits{Most: 100}, 100}, {Limits{Most: 1 << 20, Heavy: true}, 1 << 20}} {
		b := NewBudget(context.Background(), test.limits)
		if b.SpendOnListing(); b.left != test.want {
			t.Errorf("%+v: %d steps left, want %d", test.limits, b.left, test.want)
		}
	}
}
