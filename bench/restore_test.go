package bench

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/internal/sqldb"
	"stonetown/schema"
	"stonetown/tuplestore"
)

var restoreDocuments = flag.Int("restore-documents", 55_000, "documents of BenchmarkRestore; 3,400,000 have 10.2 million tuples")

// documents is a workload of documents with an owner, a viewer and a folder each.
func documents(n int) Workload {
	people := []schema.SubjectType{{Type: schema.UserType}}
	users := n / 5
	return &shape{
		name: "documents", users: users,
		types: []schema.Type{
			{Name: "folder"},
			{Name: "document", Relations: []schema.Relation{
				{Name: "folder", Subjects: []schema.SubjectType{{Type: "folder"}}},
				{Name: "owner", Subjects: people},
				{Name: "viewer", Subjects: people},
			}},
		},
		tuples: func(yield func(tuplestore.Tuple) bool) {
			for i := range n {
				d := object("document", "d", i)
				if !yield(tuplestore.Tuple{Object: d, Relation: "folder", Subject: asSubject(object("folder", "f", i/25), "")}) ||
					!yield(tuplestore.Tuple{Object: d, Relation: "owner", Subject: user(i % users)}) ||
					!yield(tuplestore.Tuple{Object: d, Relation: "viewer", Subject: user(i * 31 % users)}) {
					return
				}
			}
		},
		ask: func(r *rand.Rand, u int) Question {
			d := r.IntN(n)
			return Question{user(u), object("document", "d", d), "owner", d%users == u}
		},
	}
}

// BenchmarkRestore measures how long a process that starts takes until a tenant is resident: from
// the database, from its file, and from a file that 1,000 commits are missing in; and how long it
// takes to save the tenant at the end.
func BenchmarkRestore(b *testing.B) {
	onEach(b, func(b *testing.B, url string) {
		w := documents(*restoreDocuments)
		store := openStore(b, sqldb.Config{URL: url})
		loadAll(b, newInProcess(b, store, engine.Config{ResidentBytes: -1}), w)
		start := func(folder string, restored int64) (*InProcess, time.Duration) {
			p, began := newInProcess(b, store, engine.Config{GraphFolder: folder}), time.Now()
			if err := p.Warm(b.Context(), w); err != nil {
				b.Fatal(err)
			}
			took := time.Since(began)
			if s := p.Engine.Stats(); s.LoadsRestored != restored {
				b.Fatalf("%d graphs read from files, want %d", s.LoadsRestored, restored)
			}
			questions := w.Questioner(2, 0)
			for range 1000 {
				q := questions.Next()
				if allowed, err := p.Prepare([]Question{q})(b.Context()); err != nil || allowed[0] != q.Allowed {
					b.Fatal(wrong(&q, !q.Allowed), err)
				}
			}
			return p, took
		}
		var loading, saving, restoring, behind time.Duration
		for b.Loop() {
			folder := b.TempDir()
			p, took := start(folder, 0)
			loading += took
			began := time.Now()
			p.Engine.Close()
			saving += time.Since(began)

			p, took = start(folder, 1)
			restoring += took
			p.Engine.Close()

			writer := newInProcess(b, store, engine.Config{ResidentBytes: -1})
			for i := range 1000 {
				if err := writer.Write(b.Context(), []tuplestore.Tuple{{Object: object("document", "new", i), Relation: "owner", Subject: user(i)}}); err != nil {
					b.Fatal(err)
				}
			}
			p, took = start(folder, 1)
			behind += took
			p.Engine.Close()
		}
		each := func(d time.Duration) float64 { return d.Seconds() * 1e3 / float64(b.N) }
		b.ReportMetric(each(loading), "from-database-ms")
		b.ReportMetric(each(saving), "saving-ms")
		b.ReportMetric(each(restoring), "from-file-ms")
		b.ReportMetric(each(behind), "1000-commits-behind-ms")
	})
}
