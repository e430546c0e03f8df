package assertions

import (
	"context"
	"iter"

	"stonetown/engine"
	"stonetown/schema"
)

// Set is relations, and assertions about types with these relations only.
type Set struct {
	Name       string
	Relations  []engine.WriteOp
	Assertions []Assertion
	// Unreadable is the number of assertions of a stored set that cannot be read; it has no
	// others.
	Unreadable int
}

// Report is the result of sets with changed types.
type Report struct {
	Sets, Assertions int // how many were run
	Failed           int // how many assertions do not hold with the changed types, or cannot be read
	Failures         []Failure
	Unreadable       []string // the names of the sets that cannot be read
}

// Failure is an assertion that does not hold with changed types.
type Failure struct {
	Set       string
	Index     int // of the assertion in its set
	Assertion Assertion
	// The answers that are expected, and those with the types before and after, in the form of
	// [Assertion.Want]. Before is as expected if the change breaks the assertion.
	Expected, Before, After []string
}

const (
	// MaxFailures is the number of failures that a report names, and MaxNamed that of the first ids
	// of each list in them.
	MaxFailures = 100
	MaxNamed    = 50
	// Budget is the work that the assertions of a report may cause together, in the steps of
	// [engine.Config.MaxVisits]. If a tenant stores all that it may, each can take about 500 steps.
	Budget = 20_000_000

	stepsToWrite = 100
	stepsToAsk   = 200
	stepsToAdd   = 10 // a contextual relation
)

// TooComplex is the answer to an assertion for which no work is left.
const TooComplex = "too_complex"

// Judge runs sets with the types before and after a change. heavy does work when there is a place for
// it; each set waits for its own. The answers with the types before the change are found for
// failures only.
func Judge(ctx context.Context, sets iter.Seq2[Set, error], before, after []schema.Type, heavy func(do func() error) error) (Report, error) {
	var report Report
	meter := engine.NewMeter(Budget)
	for set, err := range sets {
		if err != nil {
			return Report{}, err
		}
		if set.Unreadable > 0 {
			report.Unreadable = append(report.Unreadable, set.Name)
			report.Assertions += set.Unreadable
			report.Failed += set.Unreadable
			continue
		}
		report.Sets++
		report.Assertions += len(set.Assertions)
		if err := heavy(func() error { return report.judge(ctx, set, before, after, meter) }); err != nil {
			return Report{}, err
		}
	}
	return report, nil
}

func (r *Report) judge(ctx context.Context, set Set, before, after []schema.Type, meter *engine.Meter) error {
	var failed []int
	answers, err := set.answers(ctx, after, nil, meter)
	if err != nil {
		return err
	}
	for i, a := range set.Assertions {
		if !a.Holds(a.Want(), answers[i]) {
			failed = append(failed, i)
		}
	}
	r.Failed += len(failed)
	if failed = failed[:min(len(failed), MaxFailures-len(r.Failures))]; len(failed) == 0 {
		return nil
	}
	was, err := set.answers(ctx, before, failed, meter)
	if err != nil {
		return err
	}
	for n, i := range failed {
		a := set.Assertions[i]
		r.Failures = append(r.Failures, Failure{set.Name, i, a, first(a.Want()), first(was[n]), first(answers[i])})
	}
	return nil
}

func first(answer []string) []string { return answer[:min(len(answer), MaxNamed)] }

// answers returns the answers to some assertions, or to all. If the types do not allow the relations
// of the set, that is the answer to each.
func (s Set) answers(ctx context.Context, types []schema.Type, some []int, meter *engine.Meter) ([][]string, error) {
	asked := s.Assertions
	if some != nil {
		asked = make([]Assertion, len(some))
		for n, i := range some {
			asked[n] = s.Assertions[i]
		}
	}
	answers := make([][]string, len(asked))
	meter.Spend(stepsToWrite * len(s.Relations))
	w, err := Load(ctx, types, s.Relations, meter)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err != nil {
		for i := range answers {
			answers[i] = []string{err.Error()}
		}
		return answers, nil
	}
	defer w.Close()
	for i, a := range asked {
		meter.Spend(stepsToAsk + stepsToAdd*len(a.Contextual))
		answer := []string{TooComplex}
		if !meter.Empty() {
			answer = w.Ask(ctx, a)
		}
		if meter.Empty() {
			answer = []string{TooComplex}
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		answers[i] = answer
	}
	return answers, nil
}
