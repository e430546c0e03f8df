package enginetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"stonetown/engine"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// TestRenames renames random types and relations between writes, several times. Every question,
// asked by the new names, must have the answer that it had by those before, and the plan must say
// so; the stored tuples must be those before with the new names.
func TestRenames(t *testing.T) {
	everywhere(t, func(t *testing.T, e *engine.Engine, s tuplestore.Store) {
		randomly(t, func(t *testing.T, r *rand.Rand) {
			ctx := context.Background()
			made, refused := 0, 0
			lacks := func() bool { return made == 0 || refused == 0 }
			for round := range untilShown(max(6, *rounds/4), lacks) {
				w := newTenant(ctx, t, e, r, fmt.Sprintf("tnt_%d", round))
				for range 6 {
					for range 6 {
						w.write(ctx, t)
					}
					if w.renameRandomly(ctx, t, s) {
						made++
					} else {
						refused++
					}
				}
			}
			t.Logf("%d renames made, %d refused", made, refused)
			if lacks() {
				t.Errorf("%d renames made, %d refused", made, refused)
			}
		})
	})
}

// renames draws renames, which need not be valid together.
func (w *writer) renames() (renames []schema.Rename) {
	for range 1 + w.rand.IntN(3) {
		typ := pick(w.rand, w.types)
		if w.rand.IntN(3) == 0 {
			renames = append(renames, schema.Rename{From: typ.Name, To: pick(w.rand, []string{"doc", "folder", "team", "paper", "area"})})
			continue
		}
		// Names that actions have by convention, and those that other types have.
		to := pick(w.rand, append([]string{"viewer", "editor", "owner", "view", "x", "y"}, relationNames...))
		renames = append(renames, schema.Rename{Type: typ.Name, From: pick(w.rand, typ.Relations).Name, To: to})
	}
	return renames
}

// renameRandomly makes random renames, and compares the tenant before and after. It reports whether they
// were possible.
func (w *writer) renameRandomly(ctx context.Context, t *testing.T, s tuplestore.Store) bool {
	t.Helper()
	change := engine.TypesChange{Renames: w.renames()}
	req := engine.PlanRequest{TypesChange: change, Context: w.values()}
	for range 150 {
		n, subject := w.node(), w.subject()
		action := n.Relation
		if w.rand.IntN(4) == 0 {
			action = pick(w.rand, []string{"view", "edit", "delete", "viewer", "x"})
		}
		req.Questions = append(req.Questions, engine.Query{Subject: &subject, Resource: n.Object, Action: action})
	}
	renaming, err := w.compiled.Rename(change.Renames)
	var wrong *schema.RenameError
	if errors.As(err, &wrong) {
		if _, err := w.engine.ApplyTypes(ctx, w.tenant, change, by); !errors.As(err, &wrong) {
			t.Fatalf("%v: %v, want %v", change.Renames, err, wrong)
		}
		return false
	}
	plan, err := w.engine.PlanTypes(ctx, w.tenant, req)
	var invalid *schema.Error
	if errors.As(err, &invalid) { // a type already named one of this name, which was not defined
		if _, err := w.engine.ApplyTypes(ctx, w.tenant, change, by); !errors.As(err, &invalid) {
			t.Fatalf("%v: %v, want %v", change.Renames, err, invalid)
		}
		return false
	}
	if err != nil {
		t.Fatalf("%v: %v", change.Renames, err)
	}
	if len(plan.Illegal)+len(plan.Affected)+len(plan.Actions) > 0 {
		t.Fatalf("%v affects something: %+v", change.Renames, plan)
	}
	was := make([]engine.Decision, len(req.Questions))
	for i, q := range req.Questions {
		was[i] = w.decide(ctx, t, q, req.Context)
	}
	applied, err := w.engine.ApplyTypes(ctx, w.tenant, change, by)
	if err != nil {
		t.Fatalf("%v: %v", change.Renames, err)
	}
	for i := range change.Renames {
		if !plan.Renamed[i].Exact || plan.Renamed[i].Count != applied.Renamed[i] {
			t.Fatalf("%v concerns %d tuples, planned %+v", change.Renames[i], applied.Renamed[i], plan.Renamed[i])
		}
	}

	renamed := facts{}
	for tuple, qualifier := range w.tuples {
		renamed[renameTuple(renaming, tuple)] = qualifier
	}
	w.tuples, w.types = renamed, renaming.Types
	if w.compiled, err = schema.Compile(w.types); err != nil {
		t.Fatal(err)
	}
	w.record(t, applied.Token)
	stored := facts{}
	for r, err := range s.Snapshot(w.tenant, revision(t, applied.Token)).Scan(ctx, tuplestore.Filter{Presence: tuplestore.WithPresence}) {
		if err != nil {
			t.Fatal(err)
		}
		stored[r.Tuple] = r.Qualifier
	}
	compareFacts(t, renamed, stored)

	for i, q := range req.Questions {
		subject := renameTuple(renaming, tuplestore.Tuple{Subject: *q.Subject}).Subject
		q.Subject, q.Resource.Type = &subject, renaming.Type(q.Resource.Type)
		now := w.decide(ctx, t, q, req.Context)
		// A new name can be that of a new action.
		var noAction *engine.UndefinedRelationError
		same := sameDecision(was[i], now) || errors.As(was[i].Err, &noAction)
		if planned := plan.Answers[i]; !same || !sameDecision(planned.Before, was[i]) || !sameDecision(planned.After, now) {
			t.Fatalf("%v: %v %s %v: %v became %v, planned %+v", change.Renames, *req.Questions[i].Subject, q.Action, req.Questions[i].Resource, was[i], now, planned)
		}
	}
	return true
}

func renameTuple(n *schema.Renaming, tuple tuplestore.Tuple) tuplestore.Tuple {
	return tuplestore.Tuple{
		Object:   tuplestore.Object{Type: n.Type(tuple.Object.Type), ID: tuple.Object.ID},
		Relation: n.Relation(tuple.Object.Type, tuple.Relation),
		Subject: tuplestore.Subject{
			Type: n.Type(tuple.Subject.Type), ID: tuple.Subject.ID, Relation: n.Relation(tuple.Subject.Type, tuple.Subject.Relation),
		},
	}
}

func compareFacts(t *testing.T, want, got facts) {
	t.Helper()
	var differences []string
	for tuple, qualifier := range want {
		if has, ok := got[tuple]; !ok || has != qualifier {
			differences = append(differences, fmt.Sprintf("%v: %+v, stored %+v", tuple, qualifier, has))
		}
	}
	if slices.Sort(differences); len(differences) > 0 || len(got) != len(want) {
		t.Fatalf("%d tuples, want %d: %v", len(got), len(want), differences)
	}
}
