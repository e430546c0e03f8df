package enginetest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/internal/pgtest"
	"stonetown/schema"
)

// BenchmarkLeases measures checks and writes on PostgreSQL, 2 ms away, without read leases and with
// three processes that hold one.
func BenchmarkLeases(b *testing.B) {
	ctx := context.Background()
	op, err := ParseRelation("document:1#viewer@user:ann")
	if err != nil {
		b.Fatal(err)
	}
	check := engine.CheckRequest{Subject: op.Subject, Queries: []engine.Query{{Resource: op.Resource, Action: "viewer"}}}
	for _, leases := range []bool{false, true} {
		b.Run(fmt.Sprintf("leases=%v", leases), func(b *testing.B) {
			url, _ := pgtest.Latency(b, pgtest.URL(b), 2*time.Millisecond)
			var engines []*engine.Engine
			for range 3 {
				if leases {
					engines = append(engines, newLeaseholder(b, url, 1, engine.Config{}).Engine)
				} else {
					engines = append(engines, newEngine(b, engine.Config{}, openSQL(b, url)))
				}
			}
			if _, err := engines[0].ApplyTypes(ctx, "tnt", engine.TypesChange{Put: []schema.Type{{Name: "document", Relations: []schema.Relation{{Name: "viewer"}}}}}, by); err != nil {
				b.Fatal(err)
			}
			n := 0
			write := func(b *testing.B) {
				n++
				another := op
				another.Resource.ID = fmt.Sprint(n)
				if _, err := engines[0].Write(ctx, "tnt", engine.WriteRequest{Origin: by, Ops: []engine.WriteOp{another}}); err != nil {
					b.Fatal(err)
				}
			}
			ask := func(b *testing.B, e *engine.Engine) {
				if _, err := e.Check(ctx, "tnt", check); err != nil {
					b.Error(err)
				}
			}
			// hold asks often enough for leases to be acquired, and to be kept at the next write.
			hold := func(b *testing.B) {
				for _, e := range engines {
					for range 40 {
						ask(b, e)
					}
				}
			}
			write(b)
			time.Sleep(100 * time.Millisecond)
			hold(b)
			time.Sleep(100 * time.Millisecond)
			b.Run("check", func(b *testing.B) {
				for b.Loop() {
					ask(b, engines[1])
				}
			})
			b.Run("check by 16", func(b *testing.B) {
				b.SetParallelism(8)
				b.RunParallel(func(p *testing.PB) {
					for p.Next() {
						ask(b, engines[1])
					}
				})
			})
			b.Run("write", func(b *testing.B) {
				for b.Loop() {
					b.StopTimer()
					hold(b)
					b.StartTimer()
					write(b)
				}
			})
			for _, rate := range []int{10, 500} {
				b.Run(fmt.Sprintf("check by 16 beside %d writes per s", rate), func(b *testing.B) {
					var stop atomic.Bool
					done := make(chan struct{})
					go func() {
						defer close(done)
						for !stop.Load() {
							write(b)
							time.Sleep(time.Second / time.Duration(rate))
						}
					}()
					b.SetParallelism(8)
					b.RunParallel(func(p *testing.PB) {
						for p.Next() {
							ask(b, engines[1])
						}
					})
					stop.Store(true)
					<-done
				})
			}
		})
	}
}
