package bench

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"stonetown/engine"
	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
)

// decisionWrites is the number of writes that a watch of decisions follows per second.
const decisionWrites = 500

// BenchmarkWatchedDecisions follows who may view documents while relations are written at a
// rate: sharing documents, creating them, moving them, and changes of groups and folders. The lag
// is the time from a commit to its event. Before, the same writes are made without a watch.
func BenchmarkWatchedDecisions(b *testing.B) {
	onEach(b, func(b *testing.B, url string) {
		d := NewDocs()
		p := newInProcess(b, openStore(b, sqldb.Config{URL: url}), engine.Config{})
		loadAll(b, p, d)
		if err := p.Warm(b.Context(), d); err != nil {
			b.Fatal(err)
		}
		writes := &docsWrites{docs: d, rand: rand.New(rand.NewPCG(1, 2)), folders: map[int]int{}}
		lag := hdrhistogram.New(1, 600_000_000, 3)
		var alone, watched time.Duration // of processors
		var written, events, scopes, changes int64
		var took time.Duration
		for b.Loop() {
			cpu, n, _ := writes.run(b, p, 5*time.Second)
			alone += cpu / time.Duration(n)

			ctx, stop := context.WithCancel(b.Context())
			var last atomic.Value // token of the last write
			last.Store("")
			var watching sync.WaitGroup
			ready := make(chan struct{})
			done := errors.New("done")
			watching.Go(func() {
				err := p.Engine.Watch(ctx, p.Tenant, engine.WatchRequest{
					Decisions: &engine.WatchedDecisions{Type: "document", Action: "view", SubjectType: "user"}, Heartbeat: 100 * time.Millisecond,
				}, func(ev engine.WatchEvent) error {
					if ready != nil {
						close(ready)
						ready = nil
					}
					if !ev.Heartbeat {
						lag.RecordValue(time.Since(ev.At).Microseconds())
						events++
						changes += int64(len(ev.Decisions))
						if ev.Scope != nil {
							scopes++
						}
					}
					if ev.Token == last.Load() {
						return done
					}
					return nil
				})
				if !errors.Is(err, done) {
					b.Errorf("watch: %v", err)
				}
			})
			<-ready
			began := time.Now()
			cpu, n, token := writes.run(b, p, 5*time.Second)
			last.Store(token)
			watching.Wait()
			stop()
			watched += cpu / time.Duration(n)
			written += n
			took += time.Since(began)
		}
		b.ReportMetric(float64(written)/took.Seconds(), "writes/s")
		b.ReportMetric(float64(lag.ValueAtQuantile(50))/1e3, "lag-p50-ms")
		b.ReportMetric(float64(lag.ValueAtQuantile(99))/1e3, "lag-p99-ms")
		b.ReportMetric(float64(events)/float64(b.N), "events")
		b.ReportMetric(float64(changes)/float64(events), "changes/event")
		b.ReportMetric(float64(scopes)/float64(b.N), "scopes")
		b.ReportMetric(float64(alone.Microseconds())/float64(b.N), "alone-cpu-µs/write")
		b.ReportMetric(float64(watched.Microseconds())/float64(b.N), "cpu-µs/write")
	})
}

// docsWrites draws writes.
type docsWrites struct {
	docs    *Docs
	mu      sync.Mutex
	rand    *rand.Rand
	made    int         // documents
	folders map[int]int // of documents that were moved
}

// run writes for some time, and returns the processor time that all of the process took meanwhile,
// the number of writes, and the newest token.
func (w *docsWrites) run(b *testing.B, p *InProcess, d time.Duration) (cpu time.Duration, n int64, token string) {
	ctx, stop := context.WithTimeout(b.Context(), d)
	defer stop()
	const writers = 16
	var count atomic.Int64
	var wg sync.WaitGroup
	before := processorTime()
	for range writers {
		wg.Go(func() {
			tick := time.NewTicker(writers * time.Second / decisionWrites)
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
				if _, err := p.Engine.Write(b.Context(), p.Tenant, engine.WriteRequest{Origin: engine.Origin{Actor: "bench"}, Ops: w.next()}); err != nil {
					b.Error(err)
					return
				}
				count.Add(1)
			}
		})
	}
	wg.Wait()
	cpu = processorTime() - before
	res, err := p.Engine.Check(b.Context(), p.Tenant, engine.CheckRequest{Subject: user(0)})
	if err != nil {
		b.Fatal(err)
	}
	return cpu, count.Load(), res.Token
}

// next draws a write: of 100, 70 share a document with a user, 20 create a document in a folder, 8
// move one, 1 adds a member to a group and 1 a viewer to a folder.
func (w *docsWrites) next() []engine.WriteOp {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.rand
	document := func() tuplestore.Object { return object("document", "d", r.IntN(docsDocuments)) }
	folder := func(n int) tuplestore.Subject { return tuplestore.Subject{Type: "folder", ID: named("f", n)} }
	op := func(o tuplestore.Object, relation string, s tuplestore.Subject) engine.WriteOp {
		return engine.WriteOp{Resource: o, Relation: relation, Subject: s}
	}
	switch k := r.IntN(100); {
	case k < 70:
		return []engine.WriteOp{op(document(), "viewer", user(r.IntN(docsUsers)))}
	case k < 90:
		w.made++
		made := object("document", "made", w.made)
		return []engine.WriteOp{op(made, "parent", folder(r.IntN(docsFolders))), op(made, "owner", user(r.IntN(docsUsers)))}
	case k < 98:
		n := r.IntN(docsDocuments)
		from, moved := w.folders[n]
		if !moved {
			from = w.docs.documents[n].folder
		}
		to := (from + 1 + r.IntN(docsFolders-1)) % docsFolders
		w.folders[n] = to
		d := object("document", "d", n)
		return []engine.WriteOp{{Resource: d, Relation: "parent", Subject: folder(from), Delete: true, IfPresent: true}, op(d, "parent", folder(to))}
	case k < 99:
		return []engine.WriteOp{op(object("group", "g", r.IntN(docsGroups)), "member", user(r.IntN(docsUsers)))}
	default:
		return []engine.WriteOp{op(object("folder", "f", r.IntN(docsFolders)), "viewer", user(r.IntN(docsUsers)))}
	}
}
