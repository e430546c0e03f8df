package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"stonetown/tuplestore"
)

// Loads are writes of many tuples that are likely new. A store may prepare one while another one
// commits.
var loadCases = []testCase{
	{"loads of several callers are applied whole, one after the other", func(f *fixture) { loadTogether(f, f, f) }},
	{"loads of a sequence are applied in order, up to the first that is not", endedSequence},
	{"a write that follows a write which was withdrawn is not applied", func(f *fixture) {
		release := f.hold()
		s := tuplestore.NewSequence()
		first, second := load(1, 120), load(2, 120)
		first.Turn, second.Turn = s.Next(), s.Next()
		ctx, cancel := context.WithCancel(f.ctx)
		defer cancel()
		withdrawn := f.start(ctx, first)
		settle()
		after := f.start(f.ctx, second)
		settle()
		cancel()
		if o := wait(f, "withdrawn load", withdrawn); o.err == nil {
			f.Error("the load was not withdrawn")
		}
		release()
		if o := wait(f, "load after it", after); !errors.Is(o.err, tuplestore.ErrSequenceEnded) {
			f.Errorf("load after one that was withdrawn: %v, want ErrSequenceEnded", o.err)
		}
		f.holds(held)
	}},
}

// load creates n relations of about n/3 objects, which it registers. Adjacent loads share an object.
func load(number, n int) tuplestore.Write {
	w := tuplestore.Write{LikelyNew: true, Actor: fmt.Sprint("load ", number)}
	object := func(i int) string { return fmt.Sprintf("%04d", number*(n/3)+i/3) }
	for i := range n {
		w.Ops = append(w.Ops, create(viewer(object(i), fmt.Sprint(number, ".", i))))
	}
	for i := 0; i < n+3; i += 3 {
		w.Ops = append(w.Ops, create(presence("doc", object(i))))
	}
	return w
}

// loadTogether writes sequences of loads, and single relations beside them, through the stores of
// all fixtures, which share one database. Some loads share tuples with loads of other sequences.
func loadTogether(through ...*fixture) {
	const sequences, each = 3, 10
	f := through[0]
	var wg sync.WaitGroup
	var mu sync.Mutex
	results := map[tuplestore.Revision]int{} // the number of tuples that each changed
	note := func(r tuplestore.Result) {
		mu.Lock()
		defer mu.Unlock()
		for _, s := range r.Statuses {
			if s == tuplestore.Created {
				results[r.Revision]++
			}
		}
	}
	for n := range sequences {
		f := through[n%len(through)]
		r := rand.New(rand.NewPCG(uint64(n), 1))
		s := tuplestore.NewSequence()
		var last tuplestore.Revision
		var order sync.Mutex
		revisions := make([]tuplestore.Revision, each)
		for i := range each {
			size := 150
			if r.IntN(2) == 0 {
				size = 1200
			}
			// The numbers of two sequences meet: their loads have tuples in common.
			w := load(100*(n%2)+i+r.IntN(2), size)
			w.CommitID = fmt.Sprintf("%d.%d", n, i)
			turn := s.Next()
			wg.Go(func() {
				w.Turn = turn
				result, err := f.store.Write(f.ctx, f.tenant, w)
				if err != nil {
					f.Errorf("load %s: %v", w.CommitID, err)
					return
				}
				note(result)
				order.Lock()
				defer order.Unlock()
				revisions[i] = result.Revision
				last = max(last, result.Revision)
			})
		}
		wg.Go(func() {
			for i := range 4 {
				note(f.mustWrite(tuplestore.Write{Ops: creations(viewer("single", fmt.Sprint(n, ".", i)))}))
			}
		})
		defer func() {
			if !slices.IsSorted(revisions) || last == 0 {
				f.Errorf("sequence %d took revisions %v", n, revisions)
			}
		}()
	}
	wg.Wait()

	head := f.head().Revision
	state := map[tuplestore.Tuple]bool{}
	commits := f.changes(0, int(head)+1)
	if len(commits) != int(head) {
		f.Fatalf("%d commits, want %d", len(commits), head)
	}
	for _, c := range commits {
		if len(c.Changes) != results[c.Revision] {
			f.Errorf("revision %d has %d changes, and created %d", c.Revision, len(c.Changes), results[c.Revision])
		}
		for _, change := range c.Changes {
			if change.Deleted || state[change.Tuple] {
				f.Fatalf("revision %d changes %v, which existed", c.Revision, change.Tuple)
			}
			state[change.Tuple] = true
		}
		if c.Revision%4 == 0 || c.Revision == head {
			f.loaded(c.Revision, state)
		}
	}
	for n := range sequences { // a load that is sent again
		w := load(0, 150)
		w.CommitID = fmt.Sprintf("%d.0", n)
		if _, err := f.store.Write(f.ctx, f.tenant, w); err != nil && !errors.Is(err, tuplestore.ErrCommitIDReused) {
			f.Errorf("again: %v", err)
		}
	}
	if now := f.head().Revision; now != head {
		f.Errorf("revision %d after loads that were sent again, want %d", now, head)
	}
}

// loaded compares the tuples at a revision.
func (f *fixture) loaded(rev tuplestore.Revision, want map[tuplestore.Tuple]bool) {
	f.Helper()
	records := f.scan(f.at(rev), tuplestore.Filter{Presence: tuplestore.WithPresence})
	if len(records) != len(want) {
		f.Fatalf("%d tuples at revision %d, want %d", len(records), rev, len(want))
	}
	for _, r := range records {
		if !want[r.Tuple] || r.CreatedRevision > rev {
			f.Fatalf("%+v at revision %d", r, rev)
		}
	}
}

func endedSequence(f *fixture) {
	for _, failing := range []int{0, 2, 4} {
		s := tuplestore.NewSequence()
		var done []<-chan outcome
		for i := range 6 {
			w := load(100*failing+i, 120)
			if i == failing {
				w.Ops = append(w.Ops, remove(viewer("missing", "ann")))
			}
			w.Turn = s.Next()
			done = append(done, f.start(f.ctx, w))
		}
		for i, c := range done {
			o := wait(f, "load of a sequence", c)
			conflict, _ := errors.AsType[*tuplestore.ConflictError](o.err)
			switch {
			case i < failing && o.err != nil:
				f.Errorf("load %d, before %d fails: %v", i, failing, o.err)
			case i == failing && conflict == nil:
				f.Errorf("load %d: %v, want a conflict", i, o.err)
			case i > failing && !errors.Is(o.err, tuplestore.ErrSequenceEnded):
				f.Errorf("load %d, after %d failed: %v, want ErrSequenceEnded", i, failing, o.err)
			}
		}
	}
	if head := f.head().Revision; head != 0+2+4 {
		f.Errorf("revision %d, want one for each load that was applied", head)
	}
}
