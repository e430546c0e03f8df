package importer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

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
	e, err := w.load(ctx)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	result := new(Result)
	for _, a := range w.Assertions {
		want, got := a.Want(), a.ask(ctx, e)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if a.holds(want, got) {
			result.Passed++
			continue
		}
		result.Differences = append(result.Differences, Difference{a.At, a.Question(), text(want), text(got)})
	}
	return result, nil
}

// load returns an engine with the relations and the types, which are defined together because
// they may refer to each other.
func (w *Data) load(ctx context.Context) (*engine.Engine, error) {
	if _, err := schema.Compile(w.Types); err != nil {
		return nil, err
	}
	store := memstore.New(memstore.Config{})
	if _, err := store.Write(ctx, scratch, tuplestore.Write{PutSchema: schema.Encode(w.Types)}); err != nil {
		return nil, err
	}
	e, err := engine.New(engine.Config{Store: store})
	if err != nil {
		return nil, err
	}
	written := 0
	for ops := range slices.Chunk(w.Relations, writeAtOnce) {
		if _, err := e.Write(ctx, scratch, engine.WriteRequest{Ops: ops}); err != nil {
			e.Close()
			var failed *engine.OpError
			if errors.As(err, &failed) {
				op := ops[failed.Index]
				return nil, fmt.Errorf("relation %d, %s: %w", written+failed.Index+1, describe(op), failed.Err)
			}
			return nil, err
		}
		written += len(ops)
	}
	return e, nil
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
func (a Assertion) ask(ctx context.Context, e *engine.Engine) []string {
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
		Context: a.Context, Contextual: a.Contextual,
	})
	if err != nil {
		return err.Error()
	}
	d := response.Decisions[0]
	var undecided *engine.ConditionError
	switch {
	case d.Allowed:
		return string(Allowed)
	case d.Err == nil, isUnknownResource(d.Err):
		return string(Denied)
	case errors.As(d.Err, &undecided) && len(undecided.Missing) > 0:
		return string(Undecided)
	}
	return d.Err.Error()
}

// isUnknownResource reports an error for a resource without any tuple, which other engines
// answer as denied.
func isUnknownResource(err error) bool {
	var unknown *engine.ResourceNotFoundError
	return errors.As(err, &unknown)
}
