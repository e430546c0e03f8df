package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stonetown/internal/pgtest"
	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
)

// numberedLoad is a load of its own objects.
func numberedLoad(n, size int) tuplestore.Write {
	w := tuplestore.Write{CommitID: fmt.Sprint("load ", n), LikelyNew: true}
	for i := range size {
		t := tupleOf([6]string{"doc", fmt.Sprintf("%d.%d", n, i), "viewer", "user", "ann", ""})
		w.Ops = append(w.Ops, tuplestore.Op{Tuple: t}, tuplestore.Op{Tuple: tuplestore.Presence(t.Object)})
	}
	return w
}

// Loads that wait for each other are prepared ahead, and committed as they were prepared. Adjacent
// ones register the same object.
func TestAhead(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := open(t, Config{DB: openDB(t, url)})
		const loads = 16
		sequence := tuplestore.NewSequence()
		var wg sync.WaitGroup
		for i := range loads {
			w := numberedLoad(i, 600)
			for shared := range 2 {
				object := tuplestore.Object{Type: "doc", ID: fmt.Sprint("shared ", i+shared)}
				w.Ops = append(w.Ops, tuplestore.Op{Tuple: tuplestore.Presence(object)})
			}
			w.Turn = sequence.Next()
			wg.Go(func() {
				result, err := s.Write(t.Context(), "t", w)
				if err != nil || result.Revision != tuplestore.Revision(i+1) {
					t.Errorf("load %d: revision %d, %v", i, result.Revision, err)
				}
			})
		}
		wg.Wait()
		if n := s.asPrepared.Load(); n < loads/2 {
			t.Errorf("%d of %d loads were committed as prepared", n, loads)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.preparing != 0 {
			t.Errorf("%d loads count as being prepared after the last", s.preparing)
		}
	})
}

// A load does not wait in the database for one after it that creates the same tuple: that one waits for
// it in turn, which the database cannot see.
func TestAheadSharesNoTuple(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := open(t, Config{DB: openDB(t, url)})
		ctx, cancel := context.WithTimeout(t.Context(), s.CommitTimeout*2/3)
		defer cancel()
		sequence := tuplestore.NewSequence()
		sizes := []int{600, 5 * manyCreated, manyCreated} // the second one is copied while the third one is
		if s.DB.Dialect() == sqldb.Cockroach {            // whose loads are not copied, and whose reads PostgreSQL does slowly
			sizes = []int{200, 200, 200}
		}
		var wg sync.WaitGroup
		for round := range 4 {
			last := tupleOf([6]string{"doc", fmt.Sprint("zz", round), "viewer", "user", "ann", ""})
			for i, size := range sizes {
				w := numberedLoad(3*round+i, size)
				if i > 0 {
					w.Ops = append(w.Ops, tuplestore.Op{Tuple: last})
				}
				w.Turn = sequence.Next()
				wg.Go(func() {
					if result, err := s.Write(ctx, "t", w); err != nil {
						t.Errorf("round %d, load %d: %v", round, i, err)
					} else if got := result.Statuses[len(result.Statuses)-1]; i == 2 && got != tuplestore.Existed {
						t.Errorf("round %d: the tuple of both loads: %v", round, got)
					}
				})
			}
		}
		wg.Wait()
	})
}

// Another tenant's write does not wait for more than the loads that are prepared: no other load is
// decided between the time when it is queued and its own decision.
func TestAheadIsFair(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := open(t, Config{DB: openDB(t, url), Committers: 1})
		const loads = 30
		var decided, before atomic.Int64 // loads; before the other write
		other := tuplestore.Write{Ops: []tuplestore.Op{op(tuplestore.Create, "1")}, Event: func(tuplestore.Result) string {
			before.CompareAndSwap(0, decided.Load())
			return ""
		}}
		var wg sync.WaitGroup
		queueOther := sync.OnceFunc(func() {
			wg.Go(func() {
				if _, err := s.Write(t.Context(), "other", other); err != nil {
					t.Error(err)
				}
			})
			for t.Context().Err() == nil {
				s.mu.Lock()
				_, queued := s.queues["other"]
				s.mu.Unlock()
				if queued {
					return
				}
				time.Sleep(time.Millisecond)
			}
		})
		sequence := tuplestore.NewSequence()
		for i := range loads {
			w := numberedLoad(i, 600)
			w.Turn = sequence.Next()
			first := sync.OnceFunc(func() { decided.Add(1) }) // a load that starts over is decided again
			w.Event = func(tuplestore.Result) string {
				if first(); i == maxAhead {
					queueOther()
				}
				return ""
			}
			wg.Go(func() {
				if _, err := s.Write(t.Context(), "t", w); err != nil {
					t.Errorf("load %d: %v", i, err)
				}
			})
		}
		wg.Wait()
		if n := before.Load(); n == 0 || n > maxAhead+1 {
			t.Errorf("another tenant's write waited for %d loads, want at most %d", n, maxAhead+1)
		}
	})
}

// While a share of all batches has faults, the loads that are stored are the first ones of a
// sequence, each once.
func TestAheadWithFaults(t *testing.T) {
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
	f.line.Randomly(rand.New(rand.NewPCG(seed, 0)), 0.08, pgtest.CommitFaults, pgtest.AnyFaults)
	// Until enough has been met, more loads follow.
	const loads, most = 24, 240
	shown := func() bool { return f.store.asPrepared.Load() >= loads/6 && len(f.line.Injected()) >= 3 }
	end, ended := loads, 0
	for stored := 0; stored < end; {
		sequence := tuplestore.NewSequence()
		errs := make([]error, end)
		var wg sync.WaitGroup
		for i := stored; i < end; i++ {
			w := numberedLoad(i, 600)
			w.Turn = sequence.Next()
			wg.Go(func() { _, errs[i] = f.store.Write(t.Context(), "t", w) })
		}
		wg.Wait()
		applied := stored
		for applied < end && errs[applied] == nil {
			applied++
		}
		for i := applied; i < end; i++ {
			ambiguous := (*sqldb.AmbiguousCommitError)(nil)
			if errs[i] == nil || errors.As(errs[i], &ambiguous) || i > applied && !errors.Is(errs[i], tuplestore.ErrSequenceEnded) {
				t.Fatalf("load %d, after %d failed: %v", i, applied, errs[i])
			}
		}
		if stored = applied; stored < end {
			ended++
		} else if !shown() && end < most {
			end += loads
		}
		f.stored(stored)
	}
	f.line.Heal()
	t.Logf("%s; %d loads as prepared, %d sequences ended", f.line, f.store.asPrepared.Load(), ended)
	if !shown() {
		t.Error("this shows too little")
	}
}

// stored checks that the first loads are stored, each once and in its own revision, and no other.
func (f *faulty) stored(loads int) {
	f.Helper()
	var revisions, rows, tuples int64
	err := f.direct.QueryRow(context.WithoutCancel(f.Context()), `
		SELECT (SELECT COALESCE(MAX(rev), 0) FROM tenant_heads WHERE tenant_id = 't'), (SELECT COUNT(*) FROM tenant_commits WHERE tenant_id = 't'),
			(SELECT COUNT(*) FROM tuples)`).Scan(&revisions, &rows, &tuples)
	if err != nil {
		f.Fatal(err)
	}
	if want := int64(loads); revisions != want || rows != want || tuples != want*1200 {
		f.Fatalf("revision %d, %d commits, %d tuples after %d loads", revisions, rows, tuples, loads)
	}
}
