package importer

import (
	"context"
	"strings"

	"stonetown/engine/assertions"
)

// Result has the results of assertions.
type Result struct {
	Passed      int
	Differences []Difference
}

// Difference is an assertion that does not hold here.
type Difference struct {
	Index     int // of the assertion
	At        Place
	Question  string
	Want, Got string
}

// Validate loads data into an engine in memory and runs the assertions. An error is about the
// data as a whole; an assertion that cannot be answered is a difference.
func Validate(ctx context.Context, w *Data) (*Result, error) {
	m, err := assertions.Load(ctx, w.Types, w.Relations, nil)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	result := new(Result)
	for i, a := range w.Assertions {
		want, got := a.Want(), m.Ask(ctx, a)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if a.Holds(want, got) {
			result.Passed++
			continue
		}
		result.Differences = append(result.Differences, Difference{i, a.At, a.Question(), text(want), text(got)})
	}
	return result, nil
}

func text(answer []string) string {
	if len(answer) == 0 {
		return "none"
	}
	return strings.Join(answer, ", ")
}
