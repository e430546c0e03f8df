package assertions

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

const (
	scratch     = "validate" // the tenant
	writeAtOnce = 1000
)

// World is an engine in memory with its own types and relations, at an instant of the caller's. It is
// not safe for concurrent use.
type World struct {
	engine  *engine.Engine
	store   *memstore.Store
	instant atomic.Pointer[time.Time] // nil: now
}

// Close frees the world.
func (m *World) Close() {
	m.engine.Close()
	m.store.Close()
}

// Load returns a world with the relations and the types, which are defined together because they may
// refer to each other. The meter, which may be nil, limits the work of all questions.
func Load(ctx context.Context, types []schema.Type, relations []engine.WriteOp, meter *engine.Meter) (*World, error) {
	m := &World{store: memstore.New(memstore.Config{})}
	if err := m.Define(ctx, types); err != nil {
		return nil, err
	}
	var err error
	resident := int64(0) // the default
	if meter != nil {
		resident = -1 // to load a graph is work that no request is charged for
	}
	m.engine, err = engine.New(engine.Config{Store: m.store, ResidentBytes: resident, Meter: meter, Clock: func() time.Time {
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
			m.Close()
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

// Define replaces the types, without regard to the stored relations.
func (m *World) Define(ctx context.Context, types []schema.Type) error {
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

// Holds compares sorted answers.
func (a Assertion) Holds(want, got []string) bool {
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

// Ask returns the answer of the engine in the form of [Assertion.Want], or its error.
func (m *World) Ask(ctx context.Context, a Assertion) []string {
	if a.Check != nil {
		m.at(a)
		return []string{a.check(ctx, m.engine)}
	}
	ids, err := m.List(ctx, a)
	if err != nil {
		return []string{err.Error()}
	}
	return ids
}

// List answers an assertion about a list: the ids, in order.
func (m *World) List(ctx context.Context, a Assertion) (ids []string, err error) {
	m.at(a)
	if q := a.Resources; q != nil {
		var list *engine.ResourceList
		list, err = m.engine.ListResources(ctx, scratch, engine.ListResourcesRequest{
			Subject: q.Subject, Type: q.Type, Action: q.Action, Context: a.Context, Contextual: a.Contextual,
		})
		if err == nil {
			ids = list.IDs
		}
	} else {
		q := a.Subjects
		var list *engine.SubjectList
		list, err = m.engine.ListSubjects(ctx, scratch, engine.ListSubjectsRequest{
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
		return nil, nil
	}
	slices.Sort(ids)
	return ids, err
}

// Explain answers the check of an assertion with its reasons, or with what is missing, and returns
// the derivation of those who may do the action. A check that has no answer is an error.
func (m *World) Explain(ctx context.Context, a Assertion, depth, limit int) (engine.Decision, *engine.ExpansionNode, error) {
	m.at(a)
	q := a.Check
	response, err := m.engine.Check(ctx, scratch, engine.CheckRequest{
		Subject: q.Subject, Queries: []engine.Query{{Resource: q.Resource, Action: q.Action}},
		Context: a.Context, Contextual: a.Contextual, Reasons: true, Denials: true,
	})
	if err != nil {
		return engine.Decision{}, nil, err
	}
	d := response.Decisions[0]
	if isUnknownResource(d.Err) { // denied, as in [World.Ask]
		return engine.Decision{}, nil, nil
	}
	if d.Err != nil {
		return d, nil, d.Err
	}
	tree, err := m.engine.Expand(ctx, scratch, engine.ExpandRequest{
		Resource: q.Resource, Action: q.Action, Contextual: a.Contextual, Depth: depth, Limit: limit,
	})
	if err != nil {
		return d, nil, err
	}
	return d, tree.Root, nil
}

// at sets the time of the engine to that of an assertion.
func (m *World) at(a Assertion) {
	m.instant.Store(nil)
	if !a.Instant.IsZero() {
		m.instant.Store(&a.Instant)
	}
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
