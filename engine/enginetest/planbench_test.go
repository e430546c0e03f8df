package enginetest

import (
	"context"
	"flag"
	"fmt"
	"testing"

	"stonetown/engine"
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
			const atOnce = 1000
			for n := 0; n < *planTuples; n += atOnce {
				var ops []engine.WriteOp
				for i := n; i < n+atOnce; i++ {
					ops = append(ops, engine.WriteOp{
						Resource: tuplestore.Object{Type: "doc", ID: fmt.Sprint(i)}, Relation: "viewer",
						Subject: tuplestore.Subject{Type: "user", ID: fmt.Sprint(i % 1000)},
					})
				}
				if _, err := e.Write(ctx, "tnt_plan", engine.WriteRequest{Origin: by, Ops: ops}); err != nil {
					b.Fatal(err)
				}
			}
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
