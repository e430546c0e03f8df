package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/internal/fair"
	"stonetown/internal/sqldb"
	"stonetown/schema"
	"stonetown/schema/condition"
	"stonetown/tuplestore"
)

// listed is the length of the lists in BenchmarkStalls.
const listed = 150_000

// BenchmarkStalls measures fully consistent checks of docs, due at a rate that the machine can
// easily do, by themselves and beside continuous lists of 150,000 resources, continuous checks
// with costly conditions, and 500 writes a second to the same tenant.
func BenchmarkStalls(b *testing.B) {
	fair.AddProcessors(1)
	onEach(b, func(b *testing.B, url string) {
		store := openStore(b, sqldb.Config{URL: url})
		p, d := newInProcess(b, store, engine.Config{}), NewDocs()
		loadAll(b, p, d)
		loadStalling(b, p)
		if err := p.Warm(b.Context(), d); err != nil {
			b.Fatal(err)
		}
		var quiet, writing, busy Figure
		var lists, conditions, written int64
		for b.Loop() {
			take := func() Figure {
				m := checking(p, d, 4, func(f *Figure) { f.Rate = 2000 })
				f, err := m.take(b.Context(), 5*time.Second)
				if err != nil {
					b.Fatal(err)
				}
				return f
			}
			beside := func(loads ...func(context.Context, int) error) (Figure, []int64) {
				ctx, stop := context.WithCancel(b.Context())
				counts := make([]atomic.Int64, len(loads))
				var wg sync.WaitGroup
				for i, load := range loads {
					wg.Go(func() {
						for ctx.Err() == nil {
							if err := load(ctx, int(counts[i].Add(1))); err != nil && ctx.Err() == nil {
								b.Error(err)
								return
							}
						}
					})
				}
				f := take()
				stop()
				wg.Wait()
				done := make([]int64, len(loads))
				for i := range counts {
					done[i] = counts[i].Load()
				}
				return f, done
			}
			quiet = take()
			writing, _ = beside(p.writeSteadily)
			var n []int64
			busy, n = beside(p.writeSteadily, p.listAll, p.checkCostly)
			written, lists, conditions = n[0], n[1], n[2]
		}
		seconds := 5.0
		b.ReportMetric(quiet.P99, "alone-p99-µs")
		b.ReportMetric(writing.P99, "beside-writes-p99-µs")
		b.ReportMetric(busy.P50, "p50-µs")
		b.ReportMetric(busy.P99, "p99-µs")
		b.ReportMetric(busy.P99/quiet.P99, "p99-to-alone")
		b.ReportMetric(float64(lists)/seconds, "lists/s")
		b.ReportMetric(float64(conditions)/seconds, "costly-checks/s")
		b.ReportMetric(float64(written)/seconds, "writes/s")
	})
}

// loadStalling adds what the lists and the costly checks are about.
func loadStalling(b *testing.B, p *InProcess) {
	b.Helper()
	viewer := []schema.Relation{{Name: "viewer", Subjects: []schema.SubjectType{{Type: "user"}, {Type: "group", Relation: "member"}}}}
	page := schema.Type{Name: "page", Relations: viewer}
	gate := schema.Type{
		Name: "gate", Relations: viewer,
		Conditions: []condition.Definition{{
			Name: "loops", Expression: "n >= 0 && l.all(x, l.all(y, x + y > n))",
			Parameters: []condition.Parameter{{Name: "n", Type: "int"}, {Name: "l", Type: "list<int>"}},
		}},
	}
	if err := p.Define(b.Context(), []schema.Type{page, gate}); err != nil {
		b.Fatal(err)
	}
	var batch []tuplestore.Tuple
	for i := range listed {
		batch = append(batch, tuplestore.Tuple{Object: object("page", "", i), Relation: "viewer", Subject: user(0)})
		if len(batch) == p.WriteLimit() {
			if err := p.Write(b.Context(), batch); err != nil {
				b.Fatal(err)
			}
			batch = batch[:0]
		}
	}
	var ops []engine.WriteOp
	for i := range 500 {
		ops = append(ops, engine.WriteOp{
			Resource: object("gate", "", 0), Relation: "viewer", Subject: tuplestore.Subject{Type: "group", ID: fmt.Sprint("g", i), Relation: "member"},
			Condition: "loops", Context: fmt.Appendf(nil, `{"n":%d}`, i),
		})
	}
	if _, err := p.Engine.Write(b.Context(), p.Tenant, engine.WriteRequest{Origin: engine.Origin{Actor: "bench"}, Ops: ops}); err != nil {
		b.Fatal(err)
	}
}

// writeSteadily writes a tuple, 500 times a second.
func (p *InProcess) writeSteadily(ctx context.Context, n int) error {
	time.Sleep(2 * time.Millisecond)
	return p.Write(ctx, []tuplestore.Tuple{{Object: object("document", "new", n), Relation: "viewer", Subject: user(n % docsUsers)}})
}

// listAll lists what the first user may view.
func (p *InProcess) listAll(ctx context.Context, _ int) error {
	list, err := p.Engine.ListResources(ctx, p.Tenant, engine.ListResourcesRequest{Subject: user(0), Type: "page", Action: "viewer"})
	if err == nil && len(list.IDs) != listed {
		err = fmt.Errorf("a list of %d resources", len(list.IDs))
	}
	return err
}

// checkCostly makes a check that evaluates 500 conditions, each in many steps.
func (p *InProcess) checkCostly(ctx context.Context, _ int) error {
	list := make([]any, 100)
	for i := range list {
		list[i] = 500 + i
	}
	_, err := p.Engine.Check(ctx, p.Tenant, engine.CheckRequest{
		Subject: user(1), Queries: []engine.Query{{Resource: object("gate", "", 0), Action: "viewer"}}, Context: map[string]any{"l": list},
	})
	return err
}
