package audit_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/engine/audit"
	"stonetown/internal/eventlog"
	"stonetown/internal/pgtest"
	"stonetown/internal/sqldb"
	"stonetown/schema"
	"stonetown/tuplestore"
	"stonetown/tuplestore/sqlstore"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// BenchmarkWriteRelation writes new relations without and with their events, one after the other
// and by concurrent callers, whose writes share transactions.
func BenchmarkWriteRelation(b *testing.B) {
	for _, backend := range []struct {
		name string
		url  func(testing.TB) string
	}{
		{"SQLite", func(t testing.TB) string { return "sqlite://" + filepath.Join(t.TempDir(), "test.db") }},
		{"PostgreSQL", pgtest.URL},
	} {
		b.Run(backend.name, func(b *testing.B) {
			ctx := context.Background()
			must := func(err error) {
				b.Helper()
				if err != nil {
					b.Fatal(err)
				}
			}
			db, err := sqldb.Open(ctx, sqldb.Config{URL: backend.url(b)})
			must(err)
			b.Cleanup(func() { db.Close() })
			must(db.Migrate(ctx, sqlstore.Migrations(), eventlog.Migrations()))
			store, err := sqlstore.New(sqlstore.Config{DB: db})
			must(err)
			b.Cleanup(func() { store.Close() })
			e, err := engine.New(engine.Config{Store: store})
			must(err)
			b.Cleanup(e.Close)
			audited := audit.Engine{Engine: e}
			_, _, _, err = audited.PutType(ctx, "tnt_a", schema.Type{Name: "doc", Relations: []schema.Relation{{Name: "viewer"}}}, engine.Origin{})
			must(err)
			var n atomic.Int64
			op := func() engine.WriteOp {
				return engine.WriteOp{
					Resource: tuplestore.Object{Type: "doc", ID: fmt.Sprint(n.Add(1))}, Relation: "viewer",
					Subject: tuplestore.Subject{Type: schema.UserType, ID: "ann"},
				}
			}
			origin := engine.Origin{Actor: "client_a"}
			with := func() error {
				_, err := audited.WriteRelation(ctx, "tnt_a", op(), origin)
				return err
			}
			without := func() error {
				_, err := e.Write(ctx, "tnt_a", engine.WriteRequest{Origin: origin, Ops: []engine.WriteOp{op()}})
				return err
			}
			b.Run("one", func(b *testing.B) { compare(b, 1, without, with) })
			b.Run("many", func(b *testing.B) { compare(b, 64, without, with) })
		})
	}
}

// compare runs two operations in turn by concurrent callers, and reports the time of the second as
// a ratio of the first.
func compare(b *testing.B, callers int, without, with func() error) {
	const turns = 200 // operations in a turn
	var took [2]time.Duration
	run := func(operation func() error) time.Duration {
		start := time.Now()
		var wg sync.WaitGroup
		for range callers {
			wg.Go(func() {
				for range turns/callers + 1 {
					if err := operation(); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		return time.Since(start)
	}
	for b.Loop() {
		took[0] += run(without)
		took[1] += run(with)
	}
	n := float64(b.N) * float64(callers) * float64(turns/callers+1)
	b.ReportMetric(float64(took[0].Microseconds())/n, "µs/write")
	b.ReportMetric(float64(took[1].Microseconds())/n, "µs/write-with-event")
	b.ReportMetric(float64(took[1])/float64(took[0]), "ratio")
	b.ReportMetric(0, "ns/op")
}
