package sqlstore

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
)

// benchTenant is as long as real IDs, because keys begin with it.
const benchTenant = "ten_BXUNRD5VVHPKQZ3A7KXG2SJWYM"

// documents yields the tuples of a document store: each document has a folder,
// an owner and a viewer, drawn from 2,000 folders and 10,000 users.
func documents() func() tuplestore.Tuple {
	r := rand.New(rand.NewPCG(42, 42))
	i := -1
	return func() tuplestore.Tuple {
		i++
		document := "d" + strconv.Itoa(i/3)
		switch i % 3 {
		case 0:
			return tupleOf([6]string{"document", document, "parent", "folder", "f" + strconv.Itoa(r.IntN(2000)), ""})
		case 1:
			return tupleOf([6]string{"document", document, "owner", "user", "u" + strconv.Itoa(r.IntN(10000)), ""})
		default:
			return tupleOf([6]string{"document", document, "viewer", "user", "u" + strconv.Itoa(r.IntN(10000)), ""})
		}
	}
}

func benchOnEach(b *testing.B, run func(b *testing.B, s *Store)) {
	for _, d := range databases {
		b.Run(d.name, func(b *testing.B) { run(b, open(b, Config{DB: openDB(b, d.url(b)), GroupOps: *groupOps})) })
	}
}

func BenchmarkBulkLoad(b *testing.B) {
	for _, size := range []int{500, 5000} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			benchOnEach(b, func(b *testing.B, s *Store) {
				next := documents()
				ops := make([]tuplestore.Op, size)
				for b.Loop() {
					for i := range ops {
						ops[i].Tuple = next()
					}
					if _, err := s.Write(b.Context(), benchTenant, tuplestore.Write{Ops: ops, Actor: "app_loader"}); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "tuples/s")
			})
		})
	}
}

// BenchmarkBulksAndSingles measures four writers of 500 relations of new resources a write, and
// the single writes of four others beside them.
func BenchmarkBulksAndSingles(b *testing.B) {
	benchOnEach(b, func(b *testing.B, s *Store) {
		var bulks atomic.Int64
		write := func(ops []tuplestore.Op) bool {
			_, err := s.Write(b.Context(), benchTenant, tuplestore.Write{Ops: ops, Actor: "app_loader"})
			if err != nil {
				b.Error(err)
			}
			return err == nil
		}
		stop := make(chan struct{})
		var singles sync.WaitGroup
		var mu sync.Mutex
		var took []time.Duration
		for w := range 4 {
			singles.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					began := time.Now()
					t := tupleOf([6]string{"note", fmt.Sprint(w, ".", i), "owner", "user", "u1", ""})
					if !write([]tuplestore.Op{{Tuple: t}, {Tuple: tuplestore.Presence(t.Object)}}) {
						return
					}
					mu.Lock()
					took = append(took, time.Since(began))
					mu.Unlock()
				}
			})
		}
		b.SetParallelism(2) // of two processors
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				n := bulks.Add(1)
				var ops, presences []tuplestore.Op
				for i := range 500 {
					t := tupleOf([6]string{"document", fmt.Sprint("d", n, ".", i), "owner", "user", fmt.Sprint("u", i), ""})
					ops = append(ops, tuplestore.Op{Tuple: t})
					presences = append(presences, tuplestore.Op{Tuple: tuplestore.Presence(t.Object)})
				}
				if !write(append(ops, presences...)) {
					return
				}
			}
		})
		b.StopTimer()
		close(stop)
		singles.Wait()
		slices.Sort(took)
		b.ReportMetric(float64(b.N*500)/b.Elapsed().Seconds(), "relations/s")
		b.ReportMetric(float64(len(took))/b.Elapsed().Seconds(), "singles/s")
		b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
		b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	})
}

func BenchmarkSingleWrites(b *testing.B) {
	for _, writers := range []int{1, 64} {
		b.Run(fmt.Sprint("writers=", writers), func(b *testing.B) {
			benchOnEach(b, func(b *testing.B, s *Store) {
				var n atomic.Int64
				b.SetParallelism(writers)
				work := func(next func() bool) {
					for next() {
						t := tupleOf([6]string{"document", fmt.Sprint("d", n.Add(1)), "owner", "user", "u1", ""})
						if _, err := s.Write(b.Context(), benchTenant, tuplestore.Write{Ops: []tuplestore.Op{{Tuple: t}}}); err != nil {
							b.Error(err)
							return
						}
					}
				}
				if writers == 1 {
					work(b.Loop)
				} else {
					b.SetParallelism(writers / 2)
					b.RunParallel(func(pb *testing.PB) { work(pb.Next) })
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
			})
		})
	}
}

func BenchmarkFind(b *testing.B) {
	for _, keys := range []int{10, 1000} {
		b.Run(fmt.Sprint("keys=", keys), func(b *testing.B) {
			benchOnEach(b, func(b *testing.B, s *Store) {
				next := documents()
				var stored []tuplestore.Tuple
				var rev tuplestore.Revision
				for range 20 {
					ops := make([]tuplestore.Op, 5000)
					for i := range ops {
						ops[i].Tuple = next()
						stored = append(stored, ops[i].Tuple)
					}
					r, err := s.Write(b.Context(), benchTenant, tuplestore.Write{Ops: ops})
					if err != nil {
						b.Fatal(err)
					}
					rev = r.Revision
				}
				sn := s.Snapshot(benchTenant, rev)
				for _, c := range []struct {
					name string
					add  func(*tuplestore.Lookup, tuplestore.Tuple)
				}{
					{"tuples", func(l *tuplestore.Lookup, t tuplestore.Tuple) { l.Tuples = append(l.Tuples, t) }},
					{"usersets", func(l *tuplestore.Lookup, t tuplestore.Tuple) { l.Usersets = append(l.Usersets, t.Node()) }},
					{"all", func(l *tuplestore.Lookup, t tuplestore.Tuple) { l.All = append(l.All, t.Node()) }},
					{"naming", func(l *tuplestore.Lookup, t tuplestore.Tuple) { l.Naming = append(l.Naming, t.Subject.Object()) }},
				} {
					b.Run(c.name, func(b *testing.B) {
						for b.Loop() {
							var l tuplestore.Lookup
							for range keys {
								c.add(&l, stored[rand.IntN(len(stored))])
							}
							if _, err := sn.Find(b.Context(), l); err != nil {
								b.Fatal(err)
							}
						}
					})
				}
			})
		})
	}
}

var groupOps = flag.Int("group-ops", 0, "GroupOps of the stores")

var pageTuples = flag.Int("page-tuples", 100_000, "tuples that BenchmarkPage reads")

// BenchmarkPage reads pages by filters of every kind, in a tenant whose documents are registered
// and in which one user has many relations. It reports the median and the slowest of 100 pages.
func BenchmarkPage(b *testing.B) {
	benchOnEach(b, func(b *testing.B, s *Store) {
		next, n := documents(), 0
		for n < *pageTuples {
			ops := make([]tuplestore.Op, 0, 7000)
			for range 5000 / 3 {
				for range 3 {
					ops = append(ops, tuplestore.Op{Tuple: next()})
				}
				document := ops[len(ops)-1].Tuple.Object
				ops = append(ops, tuplestore.Op{Tuple: tuplestore.Presence(document)},
					tuplestore.Op{Tuple: tuplestore.Tuple{Object: document, Relation: "reader", Subject: tuplestore.Subject{Type: "user", ID: "everywhere"}}})
			}
			if _, err := s.Write(b.Context(), benchTenant, tuplestore.Write{Ops: ops}); err != nil {
				b.Fatal(err)
			}
			n += len(ops)
		}
		middle := fmt.Sprint("d", n/5/2)
		for _, c := range []struct {
			name   string
			filter tuplestore.Filter
		}{
			{"type", tuplestore.Filter{ObjectType: "document"}},
			{"object", tuplestore.Filter{ObjectType: "document", ObjectID: middle}},
			{"node", tuplestore.Filter{ObjectType: "document", ObjectID: middle, Relation: "viewer"}},
			{"relation of a type", tuplestore.Filter{ObjectType: "document", Relation: "owner"}},
			{"absent relation of a type", tuplestore.Filter{ObjectType: "document", Relation: "none"}},
			{"subject type in a type", tuplestore.Filter{ObjectType: "document", SubjectType: "folder"}},
			{"absent userset in a type", tuplestore.Filter{ObjectType: "document", SubjectRelation: "member"}},
			{"subject", tuplestore.Filter{SubjectType: "user", SubjectID: "u17"}},
			{"subject with many", tuplestore.Filter{SubjectType: "user", SubjectID: "everywhere"}},
			{"subject of an object", tuplestore.Filter{ObjectType: "document", ObjectID: middle, SubjectType: "user", SubjectID: "everywhere"}},
			{"absent relation to a subject", tuplestore.Filter{Relation: "none", SubjectType: "user", SubjectID: "everywhere"}},
			{"subject type", tuplestore.Filter{SubjectType: "folder"}},
			{"absent relation to a subject type", tuplestore.Filter{Relation: "none", SubjectType: "user"}},
		} {
			b.Run(c.name, func(b *testing.B) {
				var took []time.Duration
				for b.Loop() {
					var after *tuplestore.Record
					for range 100 {
						start := time.Now()
						_, last, err := s.Page(b.Context(), benchTenant, c.filter, after, 50, 1000)
						if err != nil {
							b.Fatal(err)
						}
						took, after = append(took, time.Since(start)), last
					}
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
				b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
			})
		}
	})
}

// BenchmarkRevisionAt finds the revision of an instant among a million.
func BenchmarkRevisionAt(b *testing.B) {
	benchOnEach(b, func(b *testing.B, s *Store) {
		const revisions = 1_000_000
		exec(b, s.DB, `INSERT INTO tenant_heads (tenant_id, tenant_number, epoch, rev, schema_rev, min_rev) VALUES ($1, $3, 'e', $2, 0, 0)`, benchTenant, int64(revisions), sqldb.TenantNumber(benchTenant))
		exec(b, s.DB, `INSERT INTO tenant_commits (tenant_id, rev, actor, committed_at, changes)
			WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $2) SELECT $1, i, 'app', i * 1000, '[]' FROM n`, benchTenant, int64(revisions))
		n := int64(0)
		for b.Loop() {
			n = (n*7919 + 13) % revisions
			if rev, _, err := s.RevisionAt(b.Context(), benchTenant, time.UnixMicro(n*1000+5)); err != nil || int64(rev) != n {
				b.Fatalf("revision %d, error %v, want %d", rev, err, n)
			}
		}
	})
}
