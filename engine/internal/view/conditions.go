package view

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"stonetown/engine/internal/graph"
	"stonetown/engine/internal/work"
	"stonetown/schema"
	"stonetown/schema/condition"
	"stonetown/tuplestore"
)

// Outcome is whether a tuple holds, given its expiry and condition.
type Outcome uint8

const (
	Unmet Outcome = iota
	Met
	// Undecided: the condition depends on values that are missing, or failed.
	Undecided
)

// ConditionError is the error of a question whose answer depends on a condition that could
// not be decided.
type ConditionError struct {
	// Conditions are the conditions that could not be decided, and Missing the
	// parameters without a value; both are sorted.
	Conditions, Missing []string
	// Err is the first failure of a condition, nil if only values are missing.
	Err error
}

func (e *ConditionError) Error() string {
	if e.Err != nil {
		return e.Err.Error()
	}
	return fmt.Sprintf("the answer depends on values for %s, which the context lacks", strings.Join(e.Missing, ", "))
}

func (e *ConditionError) Unwrap() error { return e.Err }

// conditions decides for one request whether qualified tuples hold. The clock is read once,
// so that the request has a single instant, and each condition is evaluated once for the
// same stored values.
type conditions struct {
	ctx      context.Context
	compiled *schema.Compiled
	clock    func() time.Time
	values   map[string]any // the request's context
	quick    bool           // fail where an evaluation may take long

	now       int64 // µs since 1970; 0: the clock has not been read
	decided   map[evaluated]Outcome
	undecided ConditionError
}

// evaluated is a condition of a type with the values that are stored with a tuple.
type evaluated struct{ typ, name, stored string }

// Decide returns whether a tuple of an object holds; q is nil for an unqualified tuple.
func (v *View) Decide(of graph.ObjectID, q *tuplestore.Qualifier) Outcome {
	if q == nil {
		return Met
	}
	outcome, steps := v.conditions.decide(v.Graph.Types.Name(v.Type(of)), q)
	v.Budget.SpendOnConditions(steps)
	v.Undecided = v.Undecided || outcome == Undecided
	return outcome
}

// HasExpired reports whether a tuple has expired; q is nil for an unqualified tuple.
func (v *View) HasExpired(q *tuplestore.Qualifier) bool {
	return q != nil && q.ExpiresAt != 0 && q.ExpiresAt <= v.conditions.instant()
}

// Values returns the values with which the condition of a tuple of an object is evaluated, as
// a JSON object.
func (v *View) Values(of graph.ObjectID, q *tuplestore.Qualifier) ([]byte, error) {
	program := v.conditions.compiled.Condition(v.Graph.Types.Name(v.Type(of)), q.Condition)
	if program == nil {
		return nil, errors.New("condition is not defined")
	}
	return program.Values(q.Context, v.conditions.values)
}

// ConditionError returns the conditions that could not be decided so far.
func (v *View) ConditionError() *ConditionError {
	e := &v.conditions.undecided
	return &ConditionError{Conditions: slices.Clone(e.Conditions), Missing: slices.Clone(e.Missing), Err: e.Err}
}

// decide also returns the steps that it took.
func (c *conditions) decide(typ string, q *tuplestore.Qualifier) (o Outcome, steps int) {
	if q.ExpiresAt != 0 && q.ExpiresAt <= c.instant() {
		return Unmet, 0
	}
	if q.Condition == "" {
		return Met, 0
	}
	key := evaluated{typ, q.Condition, q.Context}
	steps = 1 + len(q.Context)/bytesHashed
	o, known := c.decided[key]
	if !known {
		o = c.evaluate(key, &steps)
		if c.decided == nil {
			c.decided = map[evaluated]Outcome{}
		}
		c.decided[key] = o
	}
	return o, steps
}

// bytesHashed is the number of bytes of a key that are hashed in one step.
const bytesHashed = 64

func (c *conditions) instant() int64 {
	if c.now == 0 {
		c.now = c.clock().UnixMicro()
	}
	return c.now
}

func (c *conditions) evaluate(key evaluated, steps *int) Outcome {
	program := c.compiled.Condition(key.typ, key.name)
	if program == nil { // a type keeps the conditions that its tuples name
		c.undecided.fail(key.name, errors.New("condition is not defined"))
		return Undecided
	}
	holds, missing, err := program.EvaluateMetered(c.ctx, key.stored, c.values, c.quick, steps)
	if errors.Is(err, condition.ErrNotQuick) {
		*steps += work.LightSteps // which ends the attempt
	}
	switch {
	case err != nil:
		c.undecided.fail(key.name, err)
		return Undecided
	case len(missing) > 0:
		c.undecided.miss(key.name, missing)
		return Undecided
	case holds:
		return Met
	}
	return Unmet
}

func (e *ConditionError) miss(name string, missing []string) {
	e.note(name)
	for _, parameter := range missing {
		e.Missing = insert(e.Missing, parameter)
	}
}

func (e *ConditionError) fail(name string, err error) {
	e.note(name)
	if e.Err == nil {
		e.Err = err
	}
}

// note adds a condition. The error outlives the graph that has the name.
func (e *ConditionError) note(name string) { e.Conditions = insert(e.Conditions, strings.Clone(name)) }

// insert adds a string to a sorted list without duplicates.
func insert(list []string, s string) []string {
	i, found := slices.BinarySearch(list, s)
	if found {
		return list
	}
	return slices.Insert(list, i, s)
}
