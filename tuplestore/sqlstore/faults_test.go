package sqlstore

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"stonetown/internal/eventlog"
	"stonetown/internal/pgtest"
	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
)

var (
	faultSeed   = flag.Uint64("fault-seed", 0, "seed of the faults; 0 draws one")
	faultWrites = flag.Int("fault-writes", 60, "writes of each writer while things go wrong")
)

// faulty is a store with a failing connection, and a connection without faults.
type faulty struct {
	*testing.T
	line   *pgtest.Faulty
	store  *Store
	direct *sqldb.DB
}

func openFaulty(t *testing.T) *faulty {
	t.Helper()
	url := pgtest.URL(t)
	f := &faulty{T: t, direct: openDB(t, url), line: pgtest.NewFaulty(t, url)}
	if err := f.direct.Migrate(t.Context(), eventlog.Migrations()); err != nil {
		t.Fatal(err)
	}
	exec(t, f.direct, `CREATE TABLE attached (commit_id TEXT NOT NULL)`)
	db, err := sqldb.Open(t.Context(), sqldb.Config{URL: f.line.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	f.store = open(t, Config{DB: db, CommitTimeout: 2 * time.Second, Logger: slog.New(slog.DiscardHandler)})
	return f
}

// write creates a relation, with an event of the commit, or deletes one, with another event. Both
// have a row of their own.
func (f *faulty) write(ctx context.Context, id string, ops ...tuplestore.Op) error {
	_, err := f.send(ctx, id, tuplestore.Write{CommitID: id, Ops: ops, LikelyNew: len(ops) > 1})
	return err
}

// send is write of a write that can have another commit ID.
func (f *faulty) send(ctx context.Context, id string, w tuplestore.Write) (tuplestore.Result, error) {
	e := eventlog.New(eventlog.RelationCreated, eventlog.Origin{RequestID: id}, struct{}{})
	if w.Ops[0].Kind == tuplestore.Create {
		w.Event = func(tuplestore.Result) string { return e.Text() }
	}
	w.Attach = func(_ tuplestore.Result, b *sqldb.Batch) {
		b.Queue(`INSERT INTO attached VALUES ($1)`, []any{id}, nil)
		if w.Event == nil {
			eventlog.Append(b, "t", e)
		}
	}
	return f.store.Write(ctx, "t", w)
}

func op(kind tuplestore.OpKind, object string) tuplestore.Op {
	return tuplestore.Op{Kind: kind, Tuple: tupleOf([6]string{"doc", object, "viewer", "user", "ann", ""})}
}

// loaded are creations that are copied.
func loaded(object string) (ops []tuplestore.Op) {
	for i := range manyCreated + 10 {
		ops = append(ops, tuplestore.Op{Tuple: tupleOf([6]string{"doc", object, "viewer", "user", fmt.Sprint(i), ""})})
	}
	return ops
}

// counted is the number of rows of a write in each table.
type counted struct{ Receipts, Attached, Tuples int64 }

func (f *faulty) count(id string) (c counted) {
	f.Helper()
	err := f.direct.QueryRow(f.Context(), `
		SELECT (SELECT COUNT(*) FROM tenant_receipts WHERE tenant_id = 't' AND commit_id = $1), (SELECT COUNT(*) FROM attached WHERE commit_id = $1),
			(SELECT COUNT(*) FROM tuples WHERE object = 'doc:' || $1)`, id).
		Scan(&c.Receipts, &c.Attached, &c.Tuples)
	if err != nil {
		f.Fatal(err)
	}
	return c
}

// Each fault alone, in a batch that commits and in one that does not. A write that
// succeeded is stored once; one that failed is not stored, and is stored once after it is
// sent again.
func TestEachFault(t *testing.T) {
	f := openFaulty(t)
	if err := f.write(t.Context(), "first", op(tuplestore.Create, "first")); err != nil {
		t.Fatal(err)
	}
	for name, ops := range map[string]func(id string) []tuplestore.Op{
		"one relation": func(id string) []tuplestore.Op { return []tuplestore.Op{op(tuplestore.Create, id)} },
		"many, copied": loaded,
	} {
		for commits, faults := range map[bool][]pgtest.Fault{true: pgtest.CommitFaults, false: pgtest.AnyFaults} {
			for _, fault := range faults {
				t.Run(fmt.Sprintf("%s, commit %t, %s", fault, commits, name), func(t *testing.T) {
					id := fmt.Sprintf("%s %t %s", fault, commits, name)
					f.line.Next(commits, fault)
					before := f.line.Injected()[fault]
					err := f.write(t.Context(), id, ops(id)...)
					if f.line.Injected()[fault] != before+1 {
						t.Fatal("it was not met")
					}
					if err != nil {
						t.Logf("refused: %v", err)
						if ambiguous := (*sqldb.AmbiguousCommitError)(nil); errors.As(err, &ambiguous) {
							t.Error("the caller is left in doubt")
						}
						if got := f.count(id); got != (counted{}) {
							t.Errorf("a refused write is there: %+v", got)
						}
					}
					f.line.Heal()
					for range 2 { // the write may be new the first time, but not the second time
						if err := f.write(t.Context(), id, ops(id)...); err != nil {
							t.Error(err)
						}
					}
					if got := f.count(id); got != (counted{1, 1, int64(len(ops(id)))}) {
						t.Errorf("%+v, want once", got)
					}
				})
			}
		}
	}
}

// While a share of all batches has faults, every acknowledged write is stored exactly once,
// no refused one is, and the history is consistent.
func TestFaults(t *testing.T) {
	t.Run("commit IDs", func(t *testing.T) { writeWithFaults(t, false) })
	t.Run("known", func(t *testing.T) { writeWithFaults(t, true) })
}

// writeWithFaults writes with commit IDs, or knows what exists.
func writeWithFaults(t *testing.T, knows bool) {
	seed := *faultSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("repeat with -fault-seed=%d", seed)
		}
	})
	f := openFaulty(t)
	f.line.Delay = 50 * time.Millisecond
	f.line.Randomly(rand.New(rand.NewPCG(seed, 0)), 0.15, pgtest.CommitFaults, pgtest.AnyFaults)
	type attempt struct {
		id     string
		op     tuplestore.Op
		failed bool
	}
	const writers = 6
	made := make([][]attempt, writers)
	var wg sync.WaitGroup
	for n := range writers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(n+1)))
			exists := map[string]bool{} // which only this writer changes
			var known *tuplestore.Known
			for i := range *faultWrites {
				object := fmt.Sprintf("%d-%d", n, r.IntN(4))
				a := attempt{id: fmt.Sprintf("%d.%d", n, i), op: op(tuplestore.Create, object)}
				if exists[object] {
					a.op.Kind = tuplestore.Delete
				}
				w := tuplestore.Write{CommitID: a.id, Ops: []tuplestore.Op{a.op}}
				if knows {
					w.CommitID, w.Known = "", known
				}
				result, err := f.send(t.Context(), a.id, w)
				if a.failed = err != nil; !a.failed {
					exists[object] = !exists[object]
					known = &tuplestore.Known{Epoch: result.Epoch, Revision: result.Revision}
					for object, exists := range exists {
						if exists {
							known.Facts = append(known.Facts, tuplestore.Fact{Tuple: op(0, object).Tuple})
						}
					}
				}
				made[n] = append(made[n], a)
				ambiguous := (*sqldb.AmbiguousCommitError)(nil)
				conflict := (*tuplestore.ConflictError)(nil)
				if errors.As(err, &ambiguous) || errors.As(err, &conflict) {
					t.Errorf("%s: %v", a.id, err)
				}
			}
		})
	}
	wg.Wait()
	f.line.Heal()

	alive := map[string]bool{}
	succeeded, refused := 0, 0
	for _, attempts := range made {
		for _, a := range attempts {
			want := counted{Receipts: 1, Attached: 1}
			if knows {
				want.Receipts = 0 // by another ID
			}
			if a.failed {
				want = counted{}
				refused++
			} else {
				succeeded++
				alive[a.op.Tuple.Object.ID] = a.op.Kind == tuplestore.Create
			}
			if got := f.count(a.id); got != want {
				t.Errorf("%s, failed %t: %+v, want %+v", a.id, a.failed, got, want)
			}
		}
	}
	head, err := f.store.Head(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	if int(head.Revision) != succeeded { // each changes something
		t.Errorf("revision %d after %d writes", head.Revision, succeeded)
	}
	commits, err := f.store.Changes(t.Context(), "t", 0, succeeded+1)
	if err != nil || len(commits) != succeeded {
		t.Fatalf("%d commits, %v, want %d", len(commits), err, succeeded)
	}
	replayed := map[string]bool{}
	for i, c := range commits {
		if c.Revision != tuplestore.Revision(i+1) || len(c.Changes) != 1 {
			t.Fatalf("commit %d: %+v", i, c)
		}
		object := c.Changes[0].Tuple.Object.ID
		if replayed[object] == !c.Changes[0].Deleted {
			t.Fatalf("revision %d changes nothing: %+v", c.Revision, c.Changes)
		}
		replayed[object] = !c.Changes[0].Deleted
	}
	for object, want := range alive {
		found, err := f.store.Snapshot("t", head.Revision).Find(t.Context(), tuplestore.Lookup{Tuples: []tuplestore.Tuple{op(0, object).Tuple}})
		if err != nil || (len(found) == 1) != want || replayed[object] != want {
			t.Errorf("%s: found %v, in the changelog %t, want %t, %v", object, found, replayed[object], want, err)
		}
	}
	log, err := eventlog.Open(eventlog.Config{DB: f.direct})
	if err != nil {
		t.Fatal(err)
	}
	position, logged := int64(0), map[string]bool{}
	err = log.All(t.Context(), "t", func(e eventlog.Event) error {
		logged[e.Origin.RequestID] = true
		if position++; e.Position != position {
			t.Errorf("event %d follows event %d", e.Position, position-1)
		}
		return nil
	})
	if err != nil || int(position) != succeeded || len(logged) != succeeded {
		t.Errorf("%d events, %d different, %v, want %d", position, len(logged), err, succeeded)
	}
	asKnown := f.store.asKnown.Load()
	t.Logf("%s; %d writes acknowledged, %d refused; %d groups as known", f.line, succeeded, refused, asKnown)
	if succeeded < writers**faultWrites/2 || len(f.line.Injected()) < 5 || knows && asKnown < 5 {
		t.Errorf("this shows too little")
	}
}
