package bench

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/tuplestore"
	"stonetown/tuplestore/memstore"
)

// Figures are comparable only if the workload is drawn exactly like this.
func TestDocsIsTheDocumentedWorkload(t *testing.T) {
	d := NewDocs()
	count := map[string]int{}
	seen := map[tuplestore.Tuple]bool{}
	for tuple := range d.Tuples {
		count[tuple.Object.Type+"#"+tuple.Relation]++
		seen[tuple] = true
	}
	for what, want := range map[string]int{
		"group#member": 10_000, "folder#parent": 1998, "folder#owner": 2000, "folder#viewer": 2000,
		"document#parent": 50_000, "document#owner": 50_000, "document#viewer": 50_000,
	} {
		if count[what] != want {
			t.Errorf("%d tuples %s, want %d", count[what], what, want)
		}
	}
	if len(seen) != docsTuples {
		t.Errorf("%d distinct tuples, want %d", len(seen), docsTuples)
	}
	const n = 200_000
	if share := allowedOf(nextOf(d.Questioner(1, 0), n)); share < .505 || share > .517 {
		t.Errorf("%.3f of the checks are allowed, want about .511", share)
	}
	for _, w := range []Workload{d, d.Zipf()} {
		draw := w.Questioner(2, 0)
		var all []Question
		for len(all) < n {
			all = append(all, draw.Batch(500)...)
		}
		if share := allowedOf(all); share < .49 || share > .51 {
			t.Errorf("%s: %.3f of the checks of batches are allowed, want half", w.Name(), share)
		}
	}
}

// allowedOf returns the share of the questions whose answer is yes.
func allowedOf(questions []Question) float64 {
	allowed := 0
	for i := range questions {
		if questions[i].Allowed {
			allowed++
		}
	}
	return float64(allowed) / float64(len(questions))
}

func newInProcess(tb testing.TB, store tuplestore.Store, c engine.Config) *InProcess {
	tb.Helper()
	c.Store = store
	e, err := engine.New(c)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(e.Close)
	return &InProcess{Engine: e, Store: store, Tenant: "tnt_bench"}
}

func loadAll(tb testing.TB, t Target, w Workload) {
	tb.Helper()
	ctx := context.Background()
	if err := t.Define(ctx, w.Types()); err != nil {
		tb.Fatal(err)
	}
	if _, err := load(ctx, t, w, func(int) {}); err != nil {
		tb.Fatal(err)
	}
}

func resident(tb testing.TB, w Workload) *InProcess {
	tb.Helper()
	store := memstore.New(memstore.Config{})
	tb.Cleanup(func() { store.Close() })
	p := newInProcess(tb, store, engine.Config{})
	loadAll(tb, p, w)
	if err := p.Warm(context.Background(), w); err != nil {
		tb.Fatal(err)
	}
	return p
}

// again makes calls with the drawn questions, round robin, for the iterations of the
// benchmark.
func again(b *testing.B, p *InProcess, drawn [][]Question) {
	calls := make([]Call, len(drawn))
	for i, questions := range drawn {
		calls[i] = p.Prepare(questions)
	}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		questions := drawn[n%len(drawn)]
		allowed, err := calls[n%len(drawn)](context.Background())
		n++
		if err != nil {
			b.Fatal(err)
		}
		for i := range questions {
			if allowed[i] != questions[i].Allowed {
				b.Fatal(wrong(&questions[i], allowed[i]))
			}
		}
	}
	b.ReportMetric(float64(b.N*len(drawn[0]))/b.Elapsed().Seconds(), "checks/s")
}

func BenchmarkCheck(b *testing.B) {
	for _, w := range Workloads() {
		b.Run(w.Name(), func(b *testing.B) {
			p, draw := resident(b, w), w.Questioner(1, 0)
			drawn := make([][]Question, prepared)
			for i := range drawn {
				drawn[i] = []Question{draw.Next()}
			}
			again(b, p, drawn)
		})
	}
}

func BenchmarkBatch500(b *testing.B) {
	for _, w := range Workloads() {
		b.Run(w.Name(), func(b *testing.B) {
			p, draw := resident(b, w), w.Questioner(2, 0)
			drawn := make([][]Question, 64)
			for i := range drawn {
				drawn[i] = draw.Batch(500)
			}
			again(b, p, drawn)
		})
	}
}

// The engine's answers equal those of the shapes' own arithmetic.
func TestShapes(t *testing.T) {
	for _, w := range []Workload{Chain(1), Chain(7), NestedGroups(5), Group(1000), Diamond(50), Exclusions(), Tenants(20), NewDocs().Zipf()} {
		t.Run(w.Name(), func(t *testing.T) {
			p, draw := resident(t, w), w.Questioner(5, 0)
			allowed := 0
			for i := range 200 {
				questions := draw.Batch(20)
				if _, apart := w.(tenants); !apart && i%2 == 0 {
					questions = nextOf(draw, 20)
				}
				answers, err := p.Prepare(questions)(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for i := range questions {
					if answers[i] != questions[i].Allowed {
						t.Fatal(wrong(&questions[i], answers[i]))
					}
					if answers[i] {
						allowed++
					}
				}
			}
			if allowed < 200 || allowed > 3800 {
				t.Errorf("%d of 4000 are allowed: this shows too little", allowed)
			}
		})
	}
}

// BenchmarkListResources lists all documents that a uniformly drawn user may
// view: a few for most, tens of thousands for some.
func BenchmarkListResources(b *testing.B) {
	d := NewDocs()
	p := resident(b, d)
	r := rand.New(rand.NewPCG(3, 0))
	list := func(user int) int {
		found, err := p.Engine.ListResources(context.Background(), p.Tenant, engine.ListResourcesRequest{
			Subject: tuplestore.Subject{Type: "user", ID: "u" + strconv.Itoa(user)}, Type: "document", Action: "view",
		})
		if err != nil {
			b.Fatal(err)
		}
		return len(found.IDs)
	}
	for user := range 20 { // the oracle's answer, document by document
		want := 0
		for doc := range docsDocuments {
			if d.mayView(user, doc) {
				want++
			}
		}
		if got := list(user); got != want {
			b.Fatalf("u%d: %d documents, want %d", user, got, want)
		}
	}
	var took, thousand []time.Duration // of all lists, of those that have about 1,000
	found := 0
	for b.Loop() {
		began := time.Now()
		n := list(r.IntN(docsUsers))
		took = append(took, time.Since(began))
		if found += n; n >= 900 && n <= 1100 {
			thousand = append(thousand, took[len(took)-1])
		}
	}
	b.ReportMetric(quantileMs(took, .5), "p50-ms")
	b.ReportMetric(quantileMs(took, .99), "p99-ms")
	if len(thousand) > 0 {
		b.ReportMetric(quantileMs(thousand, .5), "p50-ms-of-1000")
	}
	b.ReportMetric(float64(found)/float64(len(took)), "documents/op")
}

// quantileMs is a quantile in milliseconds.
func quantileMs(of []time.Duration, q float64) float64 {
	slices.Sort(of)
	return float64(of[int(float64(len(of))*q)].Microseconds()) / 1000
}
