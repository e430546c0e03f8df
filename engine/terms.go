package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"stonetown/schema"
	schemacondition "stonetown/schema/condition"
	"stonetown/tuplestore"
)

// verdict is whether the terms of a tuple are met.
type verdict uint8

const (
	unmet verdict = iota
	met
	// undecided: a condition depends on values that nobody gave, or failed.
	undecided
)

// terms decides, for one request, whether tuples that stand on terms hold. The
// wall clock is read once, so that all of the request sees the same moment.
type terms struct {
	ctx      context.Context
	compiled *schema.Compiled
	clock    func() time.Time
	values   map[string]any // the request's context
	quick    bool           // give up what takes long

	now       int64 // µs since 1970; 0: not read yet
	steps     int   // of work that conditions took and that is not charged yet
	decided   map[condition]verdict
	undecided ConditionError
}

// condition is a condition of a type together with the values stored with a tuple.
type condition struct{ typ, name, stored string }

// verdict decides on the terms of a tuple of an object of a type.
func (t *terms) verdict(typ string, on *tuplestore.Terms) verdict {
	if on.ExpiresAt != 0 && on.ExpiresAt <= t.moment() {
		return unmet
	}
	if on.Condition == "" {
		return met
	}
	key := condition{typ, on.Condition, on.Context}
	t.steps += 1 + len(on.Context)/bytesHashed
	v, known := t.decided[key]
	if !known {
		v = t.evaluate(key)
		if t.decided == nil {
			t.decided = map[condition]verdict{}
		}
		t.decided[key] = v
	}
	return v
}

// bytesHashed is how many bytes of a key are hashed in one step.
const bytesHashed = 64

func (t *terms) moment() int64 {
	if t.now == 0 {
		t.now = t.clock().UnixMicro()
	}
	return t.now
}

func (t *terms) evaluate(c condition) verdict {
	program := t.compiled.Condition(c.typ, c.name)
	if program == nil { // the type keeps the conditions that its tuples name
		t.undecided.fail(c.name, errors.New("condition is not defined"))
		return undecided
	}
	holds, missing, err := program.EvaluateMetered(t.ctx, c.stored, t.values, t.quick, &t.steps)
	if errors.Is(err, schemacondition.ErrNotQuick) {
		t.steps += lightSteps // which ends the attempt
	}
	switch {
	case err != nil:
		t.undecided.fail(c.name, err)
		return undecided
	case len(missing) > 0:
		t.undecided.miss(c.name, missing)
		return undecided
	case holds:
		return met
	}
	return unmet
}

func (e *ConditionError) miss(name string, missing []string) {
	e.Conditions = insert(e.Conditions, name)
	for _, parameter := range missing {
		e.Missing = insert(e.Missing, parameter)
	}
}

func (e *ConditionError) fail(name string, err error) {
	e.Conditions = insert(e.Conditions, name)
	if e.Err == nil {
		e.Err = err
	}
}

// insert adds a word to a sorted list without repeats.
func insert(list []string, word string) []string {
	i, found := slices.BinarySearch(list, word)
	if found {
		return list
	}
	return slices.Insert(list, i, word)
}

// clone is for an error that outlives the evaluation.
func (e *ConditionError) clone() *ConditionError {
	return &ConditionError{Conditions: slices.Clone(e.Conditions), Missing: slices.Clone(e.Missing), Err: e.Err}
}
