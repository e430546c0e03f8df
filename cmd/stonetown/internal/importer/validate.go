package importer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"stonetown/engine"
	"stonetown/schema"
	"stonetown/tuplestore"
	"stonetown/tuplestore/memstore"
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

const (
	scratch     = "validate" // the tenant
	writeAtOnce = 1000
)

// Validate loads data into an engine in memory and runs the assertions. An error is about the
// data as a whole; an assertion that cannot be answered is a difference.
func Validate(ctx context.Context, w *Data) (*Result, error) {
	m, err := load(ctx, w.Types, w.Relations)
	if err != nil {
		return nil, err
	}
	defer m.close()
	result := new(Result)
	for i, a := range w.Assertions {
		want, got := a.Want(), m.ask(ctx, a)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if a.holds(want, got) {
			result.Passed++
			continue
		}
		result.Differences = append(result.Differences, Difference{i, a.At, a.Question(), text(want), text(got)})
	}
	return result, nil
}

// memory is an engine in memory at an instant of the caller's.
type memory struct {
	engine  *engine.Engine
	store   *memstore.Store
	instant atomic.Pointer[time.Time] // nil: now
}

func (m *memory) close() {
	m.engine.Close()
	m.store.Close()
}

// load returns an engine with the relations and the types, which are defined together because
// they may refer to each other.
func load(ctx context.Context, types []schema.Type, relations []engine.WriteOp) (*memory, error) {
	m := &memory{store: memstore.New(memstore.Config{})}
	if err := m.define(ctx, types); err != nil {
		return nil, err
	}
	var err error
	m.engine, err = engine.New(engine.Config{Store: m.store, Clock: func() time.Time {
		if at := m.instant.Load(); at != nil {
			return *at
		}
		return time.Now()
	}})
	if err != nil {
		return nil, err
	}
	written := 0
	for ops := range slices.Chunk(relations, writeAtOnce) {
		if _, err := m.engine.Write(ctx, scratch, engine.WriteRequest{Ops: ops}); err != nil {
			m.close()
			var failed *engine.OpError
			if errors.As(err, &failed) {
				op := ops[failed.Index]
				return nil, fmt.Errorf("relation %d, %s: %w", written+failed.Index+1, describe(op), failed.Err)
			}
			return nil, err
		}
		written += len(ops)
	}
	return m, nil
}

// define replaces the types, without regard to the stored relations.
func (m *memory) define(ctx context.Context, types []schema.Type) error {
	if _, err := schema.Compile(types); err != nil {
		return err
	}
	_, err := m.store.Write(ctx, scratch, tuplestore.Write{PutSchema: schema.Encode(types)})
	return err
}

func describe(op engine.WriteOp) string {
	return tuplestore.Tuple{Object: op.Resource, Relation: op.Relation, Subject: op.Subject}.String()
}

// Want formats the expected answer, or the expected ids in order.
func (a Assertion) Want() []string {
	var want []string
	switch {
	case a.Check != nil:
		return []string{string(a.Check.Want)}
	case a.Resources != nil:
		want = slices.Clone(a.Resources.Want)
	default:
		want = slices.Clone(a.Subjects.Want)
	}
	slices.Sort(want)
	return slices.Compact(want)
}

// Question formats the question of the assertion for users.
func (a Assertion) Question() string {
	switch {
	case a.Check != nil:
		return fmt.Sprintf("may %s %s %s?", a.Check.Subject, a.Check.Action, a.Check.Resource)
	case a.Resources != nil:
		return fmt.Sprintf("which %s may %s %s?", a.Resources.Type, a.Resources.Subject, a.Resources.Action)
	}
	kind := a.Subjects.Type
	if a.Subjects.Relation != "" {
		kind += "#" + a.Subjects.Relation
	}
	return fmt.Sprintf("which %s may %s %s?", kind, a.Subjects.Action, a.Subjects.Resource)
}

// holds compares sorted answers.
func (a Assertion) holds(want, got []string) bool {
	if a.Subjects == nil || !a.Subjects.Partial {
		return slices.Equal(want, got)
	}
	for _, id := range want {
		if _, found := slices.BinarySearch(got, id); !found {
			return false
		}
	}
	return true
}

func text(answer []string) string {
	if len(answer) == 0 {
		return "none"
	}
	return strings.Join(answer, ", ")
}

// ask returns the answer of the engine in the form of [Assertion.Want], or its error.
func (m *memory) ask(ctx context.Context, a Assertion) []string {
	m.instant.Store(nil)
	if !a.Instant.IsZero() {
		m.instant.Store(&a.Instant)
	}
	e := m.engine
	var ids []string
	var err error
	switch {
	case a.Check != nil:
		return []string{a.check(ctx, e)}
	case a.Resources != nil:
		q := a.Resources
		var list *engine.ResourceList
		list, err = e.ListResources(ctx, scratch, engine.ListResourcesRequest{
			Subject: q.Subject, Type: q.Type, Action: q.Action, Context: a.Context, Contextual: a.Contextual,
		})
		if err == nil {
			ids = list.IDs
		}
	default:
		q := a.Subjects
		var list *engine.SubjectList
		list, err = e.ListSubjects(ctx, scratch, engine.ListSubjectsRequest{
			Resource: q.Resource, Action: q.Action, SubjectType: q.Type, SubjectRelation: q.Relation, Context: a.Context, Contextual: a.Contextual,
		})
		if err == nil {
			for _, entry := range list.Entries {
				if !entry.Excluded {
					ids = append(ids, entry.Subject.ID)
				}
			}
		}
	}
	if isUnknownResource(err) {
		return nil
	}
	if err != nil {
		return []string{err.Error()}
	}
	slices.Sort(ids)
	return ids
}

func (a Assertion) check(ctx context.Context, e *engine.Engine) string {
	response, err := e.Check(ctx, scratch, engine.CheckRequest{
		Subject: a.Check.Subject, Queries: []engine.Query{{Resource: a.Check.Resource, Action: a.Check.Action}},
		Context: a.Context, Contextual: a.Contextual, Reasons: len(a.Check.Reasons) > 0,
	})
	if err != nil {
		return err.Error()
	}
	d := response.Decisions[0]
	var undecided *engine.ConditionError
	switch {
	case d.Allowed:
		return string(Allowed) + unlike(a.Check.Reasons, d.Reasons)
	case d.Err == nil, isUnknownResource(d.Err):
		return string(Denied)
	case errors.As(d.Err, &undecided) && len(undecided.Missing) > 0:
		return string(Undecided)
	}
	return d.Err.Error()
}

// unlike says which of the wanted steps a proof does not have; empty: it has all.
func unlike(want []string, proof []engine.Reason) string {
	steps := make([]string, len(proof))
	for i, r := range proof {
		steps[i] = r.Via
	}
	for _, step := range want {
		if !slices.Contains(steps, step) {
			return fmt.Sprintf(" without %s, by %s", step, strings.Join(steps, ", "))
		}
	}
	return ""
}

// isUnknownResource reports an error for a resource without any tuple, which other engines
// answer as denied.
func isUnknownResource(err error) bool {
	var unknown *engine.ResourceNotFoundError
	return errors.As(err, &unknown)
}
