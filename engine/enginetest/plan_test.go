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

// TestPlansComeTrue plans random changes of types and then makes them. The plan must name the
// tuples that stand in the way, the answers afterwards must be the planned ones, and only those
// of affected relations and actions may differ from the answers before.
func TestPlansComeTrue(t *testing.T) {
	everywhere(t, func(t *testing.T, e *engine.Engine, _ tuplestore.Store) {
		randomly(t, func(t *testing.T, r *rand.Rand) {
			ctx := context.Background()
			made, refused, differ := 0, 0, 0
			lacks := func() bool { return made == 0 || refused == 0 || differ == 0 }
			for round := range untilShown(max(10, *rounds/2), lacks) { // few plans change an answer
				w := newTenant(ctx, t, e, r, fmt.Sprintf("tnt_%d", round))
				for range 15 {
					w.write(ctx, t)
					w.renameSometimes(ctx, t)
				}
				plan := w.plan(ctx, t)
				applied, err := e.ApplyTypes(ctx, w.tenant, engine.TypesChange{Put: plan.Put, Delete: plan.Delete, Expected: plan.Version}, by)
				var inUse *engine.TypeInUseError
				switch {
				case len(plan.Illegal) > 0 && !errors.As(err, &inUse):
					t.Fatalf("%d kinds of illegal tuples are planned, but: %v", len(plan.Illegal), err)
				case len(plan.Illegal) > 0:
					refused++
					continue
				case err != nil:
					t.Fatalf("no illegal tuples are planned, but: %v", err)
				}
				made++
				for i, q := range plan.Questions {
					before, after := plan.Answers[i].Before, plan.Answers[i].After
					if got := w.decide(ctx, t, q, plan.Context); !sameDecision(got, after) {
						t.Fatalf("%v: planned %v, now %v", q, after, got)
					}
					if plan.Answers[i].Differs() {
						differ++
						var invalid *engine.InvalidSubjectError // its type or relation is gone
						if !errors.As(after.Err, &invalid) && !plan.affects(q) {
							t.Fatalf("%v: %v becomes %v, but its relation is not affected", q, before, after)
						}
					}
				}
				if _, err := e.ApplyTypes(ctx, w.tenant, engine.TypesChange{Expected: plan.Version}, by); applied.Version != plan.Version && err == nil {
					t.Fatal("a change for an earlier version is made")
				}
			}
			t.Logf("%d changes made, %d refused, %d answers differ", made, refused, differ)
			if lacks() {
				t.Errorf("%d changes made, %d refused, %d answers differ", made, refused, differ)
			}
		})
	})
}

// planned is a plan with its request.
type planned struct {
	engine.PlanRequest
	*engine.TypesPlan
	before *schema.Compiled
}

// plan plans a random change, and compares its parts that are known before it is made.
func (w *writer) plan(ctx context.Context, t *testing.T) planned {
	t.Helper()
	p := planned{before: w.compiled}
	after := w.compiled
	for ok := false; !ok; {
		p.TypesChange = w.typesChange()
		types := slices.DeleteFunc(slices.Clone(w.types), func(typ schema.Type) bool {
			return slices.Contains(p.Delete, typ.Name) || slices.ContainsFunc(p.Put, func(put schema.Type) bool { return put.Name == typ.Name })
		})
		compiled, err := schema.Compile(append(types, p.Put...))
		after, ok = compiled, err == nil
	}
	for range 100 {
		n := w.node()
		s := w.subject()
		p.Questions = append(p.Questions, engine.Query{Subject: &s, Resource: n.Object, Action: n.Relation})
	}
	p.Context = w.values()
	var err error
	if p.TypesPlan, err = w.engine.PlanTypes(ctx, w.tenant, p.PlanRequest); err != nil {
		t.Fatalf("plan: %v", err)
	}
	for i, q := range p.Questions {
		if got := w.decide(ctx, t, q, p.Context); !sameDecision(got, p.Answers[i].Before) {
			t.Fatalf("%v: now %v, by the plan %v", q, got, p.Answers[i].Before)
		}
	}
	illegal := 0
	for _, found := range p.Illegal {
		if !found.Exact || len(found.Samples) != min(found.Count, engine.MaxSamples) {
			t.Fatalf("%d illegal tuples, %d samples, exact %v", found.Count, len(found.Samples), found.Exact)
		}
		illegal += found.Count
	}
	want := 0
	for tuple := range w.tuples {
		s := kindOf(tuple.Subject)
		switch {
		case !after.HasType(tuple.Object.Type):
			want++
		case !tuple.IsPresence() && after.Allows(tuple.Object.Type, tuple.Relation, s) != schema.Allowed:
			want++
		}
	}
	if illegal != want {
		t.Fatalf("%d illegal tuples are planned, there are %d", illegal, want)
	}
	return p
}

// typesChange draws a change: rewrites and subjects of a type change, its relations come and go,
// or the type is deleted.
func (w *writer) typesChange() engine.TypesChange {
	if w.rand.IntN(10) == 0 {
		return engine.TypesChange{Delete: []string{pick(w.rand, w.types).Name}}
	}
	var ch engine.TypesChange
	for _, i := range w.rand.Perm(len(w.types))[:1+w.rand.IntN(len(w.types))] {
		typ := w.types[i]
		typ.Relations = slices.Clone(typ.Relations)
		at := w.rand.IntN(len(typ.Relations))
		switch w.rand.IntN(8) {
		case 0:
			typ.Relations[at].Subjects = randomSubjectTypes(w.rand)
		case 1:
			typ.Relations = slices.Delete(typ.Relations, at, at+1)
		case 2:
			typ.Actions = map[string]string{"act": typ.Relations[at].Name, "view": typ.Relations[at].Name}
		case 3:
			typ.Conditions = slices.Clone(typ.Conditions)
			typ.Conditions[1].Expression = "x && y"
		case 4:
			typ.Relations = append(typ.Relations, schema.Relation{Name: "new", Rewrites: []schema.Rewrite{randomRewrite(w.rand, 1)}})
		default:
			typ.Relations[at].Rewrites = []schema.Rewrite{{Kind: schema.This}, randomRewrite(w.rand, 0)}
		}
		ch.Put = append(ch.Put, typ)
	}
	return ch
}

// decide asks a question of the types as they are.
func (w *writer) decide(ctx context.Context, t *testing.T, q engine.Query, values map[string]any) engine.Decision {
	t.Helper()
	res, err := w.engine.Check(ctx, w.tenant, engine.CheckRequest{Queries: []engine.Query{q}, Context: values})
	if err != nil {
		return engine.Decision{Err: err}
	}
	return res.Decisions[0]
}

func sameDecision(a, b engine.Decision) bool {
	return a.Allowed == b.Allowed && (a.Err == nil) == (b.Err == nil)
}

// affects reports whether the plan says that the answer may change.
func (p planned) affects(q engine.Query) bool {
	relation, _ := p.before.ActionRelation(q.Resource.Type, q.Action)
	return slices.Contains(p.Affected, schema.RelationName{Type: q.Resource.Type, Relation: relation}) ||
		slices.Contains(p.Actions, engine.AffectedAction{Type: q.Resource.Type, Action: q.Action})
}
