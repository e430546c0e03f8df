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
	everywhere(t, func(t *testing.T, e *engine.Engine, _ tuplestore.Store) {
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
					if w.renameRandomly(ctx, t) {
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
		typ, other := pick(w.rand, w.types), pick(w.rand, w.types)
		if w.rand.IntN(6) == 0 { // exchange two names
			if typ.Name != other.Name {
				renames = append(renames, schema.Rename{From: typ.Name, To: other.Name}, schema.Rename{From: other.Name, To: typ.Name})
			} else if a, b := pick(w.rand, typ.Relations).Name, pick(w.rand, typ.Relations).Name; a != b {
				renames = append(renames, schema.Rename{Type: typ.Name, From: a, To: b}, schema.Rename{Type: typ.Name, From: b, To: a})
			}
			continue
		}
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
func (w *writer) renameRandomly(ctx context.Context, t *testing.T) bool {
	t.Helper()
	change := engine.TypesChange{Renames: w.renames()}
	if len(change.Renames) == 0 {
		return false
	}
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
	for i, r := range change.Renames {
		if want := w.concerned(r); plan.Renamed[i] != (engine.RenamedTuples{Count: want, Exact: true}) {
			t.Fatalf("%v concerns %d tuples, planned %+v", r, want, plan.Renamed[i])
		}
	}
	if !w.rename(ctx, t, change.Renames, false) {
		t.Fatalf("%v are planned, but not made", change.Renames)
	}
	compareFacts(t, w.tuples, w.stored(ctx, t))

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

// rename makes renames, and renames the tuples of the model by hand. It reports whether they are
// possible. To forget actions that have the former names of relations, it also replaces the types.
func (w *writer) rename(ctx context.Context, t *testing.T, renames []schema.Rename, forgetActions bool) bool {
	t.Helper()
	renaming, err := w.compiled.Rename(renames)
	if err != nil || len(renames) == 0 {
		return false
	}
	change := engine.TypesChange{Renames: renames}
	if forgetActions {
		for i := range renaming.Types {
			renaming.Types[i].Actions = nil
		}
		change.Put = renaming.Types
	}
	compiled, err := schema.Compile(renaming.Types)
	if err != nil || forgetActions && !asksByName(compiled) {
		return false
	}
	renamed := facts{}
	for tuple, qualifier := range w.tuples {
		to := renameTuple(renaming, tuple)
		renamed[to] = qualifier
		if refusal := compiled.Allows(to.Object.Type, to.Relation, kindOf(to.Subject)); !to.IsPresence() && refusal != schema.Allowed {
			t.Fatalf("%v: %s is %s, after %s was allowed", renames, to, refusal, tuple)
		}
	}
	applied, err := w.engine.ApplyTypes(ctx, w.tenant, change, by)
	if err != nil {
		t.Fatalf("%v: %v", renames, err)
	}
	w.tuples, w.types, w.compiled = renamed, renaming.Types, compiled
	w.record(t, applied.Token)
	return true
}

func kindOf(s tuplestore.Subject) schema.SubjectType {
	return schema.SubjectType{Type: s.Type, Relation: s.Relation, Wildcard: s.Shape().Wildcard}
}

// asksByName reports whether each action that has the name of a relation means it: view means viewer,
// if there is one.
func asksByName(c *schema.Compiled) bool {
	for _, t := range c.Types {
		for _, r := range t.Relations {
			if means, _ := c.ActionRelation(t.Name, r.Name); means != r.Name {
				return false
			}
		}
	}
	return true
}

// renameSometimes makes random renames from time to time.
func (w *writer) renameSometimes(ctx context.Context, t *testing.T) {
	t.Helper()
	if w.rand.IntN(5) == 0 {
		w.rename(ctx, t, w.renames(), true)
	}
}

// concerned counts the tuples of the model that a rename concerns.
func (w *writer) concerned(r schema.Rename) (n int) {
	for tuple := range w.tuples {
		for _, names := range [][2]string{{tuple.Object.Type, tuple.Relation}, {tuple.Subject.Type, tuple.Subject.Relation}} {
			if r.Type == "" && names[0] == r.From || r.Type != "" && names == [2]string{r.Type, r.From} {
				n++
			}
		}
	}
	return n
}

// stored lists all tuples of the tenant, in pages.
func (w *writer) stored(ctx context.Context, t *testing.T) facts {
	t.Helper()
	stored := facts{}
	var types []string
	for name := range w.compiled.TypeNames() {
		types = append(types, name)
	}
	for _, name := range types {
		var after *tuplestore.Record
		for more := true; more; more = after != nil {
			page, next, err := w.engine.FindRelations(ctx, w.tenant, engine.RelationFilter{Resource: tuplestore.Object{Type: name}}, after, 3)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range page {
				stored[r.Tuple] = r.Qualifier
			}
			after = next
		}
		for more := true; more; {
			page, err := w.engine.Registered(ctx, w.tenant, name, after, 3)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range page {
				stored[r.Tuple] = r.Qualifier
				after = r.Position
			}
			more = len(page) > 0
		}
	}
	return stored
}

// adoptStored takes the names of stored tuples from the engine: lists have their order.
func (w *writer) adoptStored(ctx context.Context, t *testing.T) {
	t.Helper()
	types, err := w.engine.Types(ctx, w.tenant)
	if err != nil {
		t.Fatal(err)
	}
	for i := range w.types {
		at := slices.IndexFunc(types, func(of schema.Type) bool { return of.Name == w.types[i].Name })
		w.types[i] = schema.KeepStored(w.types[i], &types[at], nil)
	}
	if w.compiled, err = schema.Compile(w.types); err != nil {
		t.Fatal(err)
	}
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
