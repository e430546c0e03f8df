package enginetest

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/schema"
	"stonetown/tuplestore"
)

var planTuples = flag.Int("plantuples", 20_000, "tuples of BenchmarkPlanTypes")

// BenchmarkPlanTypes plans to make all tuples of a relation illegal, which have to be counted.
func BenchmarkPlanTypes(b *testing.B) {
	for _, backend := range []string{"sqlite", "postgres"} {
		b.Run(backend, func(b *testing.B) {
			ctx := context.Background()
			s := backends[backend](b)
			e := newEngine(b, engine.Config{ResidentBytes: -1}, s)
			types, err := ParseSchema("doc\n  owner [user]\n  viewer [user]")
			if err != nil {
				b.Fatal(err)
			}
			if _, err := e.ApplyTypes(ctx, "tnt_plan", engine.TypesChange{Put: types}, by); err != nil {
				b.Fatal(err)
			}
			fillPlan(b, e, *planTuples)
			planned, err := ParseSchema("doc\n  owner [user]\n  viewer: owner")
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				reported := 0
				progress := func(counted int) error { reported = counted; return nil }
				plan, err := e.PlanTypes(ctx, "tnt_plan", engine.PlanRequest{TypesChange: engine.TypesChange{Put: planned}, Progress: progress})
				if err != nil {
					b.Fatal(err)
				}
				if len(plan.Illegal) != 1 || plan.Illegal[0].Count < *planTuples || reported < *planTuples/1000*1000 {
					b.Fatalf("%+v", plan.Illegal)
				}
			}
		})
	}
}

// fillPlan writes a number of relations.
func fillPlan(b *testing.B, e *engine.Engine, tuples int) {
	b.Helper()
	const atOnce = 1000
	for n := 0; n < tuples; n += atOnce {
		var ops []engine.WriteOp
		for i := n; i < n+atOnce; i++ {
			ops = append(ops, engine.WriteOp{
				Resource: tuplestore.Object{Type: "doc", ID: fmt.Sprint(i)}, Relation: "viewer",
				Subject: tuplestore.Subject{Type: "user", ID: fmt.Sprint(i % 1000)},
			})
		}
		if _, err := e.Write(context.Background(), "tnt_plan", engine.WriteRequest{Origin: by, Ops: ops}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRename renames a type with few relations and resources, and one with many, and asks by the
// new name: it costs the same. The tenant is resident or cold.
func BenchmarkRename(b *testing.B) {
	for _, backend := range []string{"sqlite", "postgres"} {
		for temperature, config := range temperatures {
			for _, tuples := range []int{100, 100_000, 1_000_000} {
				b.Run(fmt.Sprint(backend, "/", temperature, "/", tuples), func(b *testing.B) {
					ctx := context.Background()
					e := newEngine(b, config, backends[backend](b))
					types, err := ParseSchema("doc\n  viewer [user]")
					if err != nil {
						b.Fatal(err)
					}
					if _, err := e.ApplyTypes(ctx, "tnt_plan", engine.TypesChange{Put: types}, by); err != nil {
						b.Fatal(err)
					}
					fillPlan(b, e, tuples/2) // and their resources
					names := []string{"doc", "paper"}
					check := func() {
						res, err := e.Check(ctx, "tnt_plan", engine.CheckRequest{
							Subject: tuplestore.Subject{Type: "user", ID: "7"},
							Queries: []engine.Query{{Resource: tuplestore.Object{Type: names[0], ID: "7"}, Action: "view"}},
						})
						if err != nil || !res.Decisions[0].Allowed {
							b.Fatalf("%+v, %v", res, err)
						}
					}
					for check(); config.ResidentBytes == 0 && e.Stats().Loads == 0; check() {
						time.Sleep(time.Millisecond)
					}
					for b.Loop() {
						slices.Reverse(names)
						_, err := e.ApplyTypes(ctx, "tnt_plan", engine.TypesChange{Renames: []schema.Rename{{From: names[1], To: names[0]}}}, by)
						if err != nil {
							b.Fatal(err)
						}
						check()
					}
					if n := e.Stats().Loads; n > 1 {
						b.Errorf("the tenant was loaded %d times", n)
					}
				})
			}
		}
	}
}
