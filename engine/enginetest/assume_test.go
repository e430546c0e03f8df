package enginetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// TestAssumptions asks questions under random assumptions, of the present and the past. The
// answers must be those of another tenant in which the changes have been made.
func TestAssumptions(t *testing.T) {
	residentAndCold(t, func(t *testing.T, e *engine.Engine, s tuplestore.Store) {
		randomly(t, func(t *testing.T, r *rand.Rand) {
			ctx := context.Background()
			seen := map[Verdict]int{}
			removed, added, narrowed := 0, 0, 0
			lacks := func() bool {
				return removed == 0 || added == 0 || seen[Allowed] == 0 || seen[Denied] == 0 || seen[NotFound] == 0
			}
			for round := range untilShown(max(4, *rounds/10), lacks) {
				w := newTenant(ctx, t, e, r, fmt.Sprintf("tnt_%d", round))
				w.soon = true
				first := w.history.newest
				types := map[tuplestore.Revision][]schema.Type{first: w.types}
				for range 20 {
					w.write(ctx, t)
					types[w.history.newest] = w.types
					w.renameSometimes(ctx, t)
					types[w.history.newest] = w.types
				}
				commits, err := s.Changes(ctx, w.tenant, 0, 1000)
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(3 * time.Millisecond) // until the points of randomPoint have passed
				for i := range 10 {
					c, rev, now := randomPoint(r, commits, first, w.newest.Load().(string))
					if r.IntN(2) == 0 { // the present
						c, rev = engine.Consistency{}, w.history.newest
					}
					u := w.universe
					u.soon, u.types = false, types[rev]
					if u.compiled, err = schema.Compile(u.types); err != nil {
						t.Fatal(err)
					}
					state := w.history.at(rev)
					var a engine.Assumption
					c.Assume = &a
					if a.Instant = now; r.IntN(3) == 0 {
						a.Instant = []time.Time{time.Unix(900_000_000, 0), time.Unix(40_000_000_000, 0)}[r.IntN(2)]
					}
					after := u.assume(state, &a)
					removed, added, narrowed = removed+len(a.Remove), added+len(a.Add), narrowed+len(state)-len(after)
					after = after.without(a.Instant)
					replica := newReplica(ctx, t, e, fmt.Sprintf("%s_%d", w.tenant, i), u.types, after)
					for range 6 {
						u.sameAnswers(ctx, t, e, w.tenant, c, replica, seen)
					}
					if t.Failed() {
						t.Fatalf("at %+v, revision %d, assuming %+v\nschema before %s\nafter %s\ntuples before %v\nafter %v",
							c, rev, a, schema.Encode(w.types), schema.Encode(u.types), state, after)
					}
				}
				if after := w.history.newest; after != tuplestore.Revision(len(commits)) {
					t.Errorf("the questions wrote revision %d after %d", after, len(commits))
				}
			}
			t.Logf("%d relations removed, %d added, %d gone in the end, answers %v", removed, added, narrowed, seen)
			if lacks() {
				t.Error("this shows too little")
			}
		})
	})
}

// assume draws changes of a state and makes them in a copy. The universe gets the new types.
func (u *universe) assume(state facts, a *engine.Assumption) facts {
	after := maps.Clone(state)
	for _, tuple := range slices.SortedFunc(maps.Keys(state), tuplestore.Tuple.Compare) {
		if !tuple.IsPresence() && u.rand.IntN(5) == 0 {
			a.Remove = append(a.Remove, engine.WriteOp{Resource: tuple.Object, Relation: tuple.Relation, Subject: tuple.Subject})
			delete(after, tuple)
		}
	}
	if u.rand.IntN(2) == 0 {
		u.assumeTypes(after, a)
	}
	for range u.rand.IntN(6) {
		if op, ok := u.op(); ok {
			a.Add = append(a.Add, op)
			f := factOf(op)
			after[f.Tuple], after[tuplestore.Presence(f.Object)] = f.Qualifier, tuplestore.Qualifier{}
		}
	}
	return after
}

// assumeTypes draws a change of types, and deletes what it does not allow.
func (u *universe) assumeTypes(after facts, a *engine.Assumption) {
	w := writer{universe: *u}
	change := w.typesChange()
	types := slices.DeleteFunc(slices.Clone(u.types), func(typ schema.Type) bool {
		return slices.Contains(change.Delete, typ.Name) || slices.ContainsFunc(change.Put, func(put schema.Type) bool { return put.Name == typ.Name })
	})
	types = append(types, change.Put...)
	compiled, err := schema.Compile(types)
	if err != nil || len(types) == 0 || slices.ContainsFunc(types, func(t schema.Type) bool { return len(t.Relations) == 0 }) {
		return
	}
	a.Types, u.types, u.compiled = change, types, compiled
	maps.DeleteFunc(after, func(tuple tuplestore.Tuple, _ tuplestore.Qualifier) bool {
		s := kindOf(tuple.Subject)
		return !compiled.HasType(tuple.Object.Type) || !tuple.IsPresence() && compiled.Allows(tuple.Object.Type, tuple.Relation, s) != schema.Allowed
	})
}

// An assumption that is not possible is refused with its part.
func TestAssumptionsRefused(t *testing.T) {
	residentAndCold(t, func(t *testing.T, e *engine.Engine, _ tuplestore.Store) {
		ctx := t.Context()
		types, err := ParseSchema("doc\n  viewer [user]")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.ApplyTypes(ctx, "t", engine.TypesChange{Put: types}, by); err != nil {
			t.Fatal(err)
		}
		op := func(text string) engine.WriteOp {
			op, err := ParseRelation(text)
			if err != nil {
				t.Fatal(err)
			}
			return op
		}
		if _, err := e.Write(ctx, "t", engine.WriteRequest{Origin: by, Ops: []engine.WriteOp{op("doc:1#viewer@user:ann")}}); err != nil {
			t.Fatal(err)
		}
		ann := op("doc:1#viewer@user:ann")
		ask := func(a engine.Assumption) (*engine.CheckResponse, error) {
			return e.Check(ctx, "t", engine.CheckRequest{
				Subject: ann.Subject, Queries: []engine.Query{{Resource: ann.Resource, Action: "viewer"}}, Consistency: engine.Consistency{Assume: &a},
			})
		}
		for name, c := range map[string]struct {
			engine.Assumption
			part  string
			index int
		}{
			"a relation that does not exist": {engine.Assumption{Remove: []engine.WriteOp{ann, op("doc:1#viewer@user:bob")}}, "remove", 1},
			"a relation without a type":      {engine.Assumption{Remove: []engine.WriteOp{op("ghost:1#viewer@user:bob")}}, "remove", 0},
			"a subject that is not allowed":  {engine.Assumption{Add: []engine.WriteOp{ann, op("doc:1#viewer@doc:1")}}, "add", 1},
			"a relation without a definition": {engine.Assumption{
				Types: engine.TypesChange{Put: []schema.Type{{Name: "doc", Relations: []schema.Relation{{Name: "reader"}}}}}, Add: []engine.WriteOp{ann},
			}, "add", 0},
			"a type that does not exist": {engine.Assumption{Types: engine.TypesChange{Delete: []string{"ghost"}}}, "types", 0},
			"types that are not valid":   {engine.Assumption{Types: engine.TypesChange{Put: []schema.Type{{Name: "doc", Relations: []schema.Relation{{Name: "!"}}}}}}, "types", 0},
		} {
			_, err := ask(c.Assumption)
			var refused *engine.AssumptionError
			if !errors.As(err, &refused) || refused.Part != c.part || refused.Index != c.index {
				t.Errorf("%s: %v", name, err)
			}
		}
		var tooMany *engine.TooManyContextualError
		for _, a := range []engine.Assumption{{Add: slices.Repeat([]engine.WriteOp{ann}, 101)}, {Remove: slices.Repeat([]engine.WriteOp{ann}, 101)}} {
			if _, err := ask(a); !errors.As(err, &tooMany) {
				t.Errorf("101 relations: %v", err)
			}
		}
		// It holds for its question only.
		for _, a := range []engine.Assumption{{Remove: []engine.WriteOp{ann}}, {}} {
			res, err := ask(a)
			if want := len(a.Remove) == 0; err != nil || res.Decisions[0].Err != nil || res.Decisions[0].Allowed != want {
				t.Errorf("%+v: %+v, %v", a, res, err)
			}
		}
	})
}
