package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
)

var concurrencyCases = []testCase{
	{"each of 64 writers reads its own writes, each at a revision of its own", func(f *fixture) {
		writeTogether(f, f)
	}},
	{"a failing write does not affect the others of its group", func(f *fixture) {
		sentinel := errors.New("no")
		f.apply(create(viewer("1", "existing")))
		release := f.hold()
		var want []tuplestore.Tuple
		var done []<-chan outcome
		for i := range 50 {
			w := tuplestore.Write{Ops: creations(viewer(fmt.Sprint(i%5), fmt.Sprint(i)))}
			switch i % 5 {
			case 1:
				w.Ops = append(w.Ops, remove(viewer("1", "missing")))
			case 2:
				w.Also = func(context.Context, *sqldb.Tx) error { return sentinel }
			case 3:
				w.Absent = []tuplestore.Filter{{SubjectType: "user", SubjectID: "existing"}}
			default:
				want = append(want, w.Ops[0].Tuple)
			}
			done = append(done, f.start(f.ctx, w))
		}
		release()
		var revisions []tuplestore.Revision
		for i, c := range done {
			o := wait(f, "neighbours", c)
			conflict, _ := errors.AsType[*tuplestore.ConflictError](o.err)
			switch i % 5 {
			case 1:
				if conflict == nil || conflict.Op != 1 || conflict.Tuple != viewer("1", "missing") {
					f.Errorf("write %d: error %v, want a conflict of op 1", i, o.err)
				}
			case 2:
				if !errors.Is(o.err, sentinel) {
					f.Errorf("write %d: error %v, want that of Also", i, o.err)
				}
			case 3:
				if conflict == nil || conflict.Absent != 0 || conflict.Count != 1 {
					f.Errorf("write %d: error %v, want a conflict of precondition 0", i, o.err)
				}
			default:
				if o.err != nil {
					f.Errorf("write %d: %v", i, o.err)
				}
				revisions = append(revisions, o.result.Revision)
			}
		}
		slices.Sort(revisions)
		for i, rev := range revisions {
			if want := tuplestore.Revision(i + 3); rev != want {
				f.Fatalf("revisions of those that succeeded: %v, want 3 and on without gaps", revisions)
			}
		}
		f.holds(append(want, viewer("1", "existing"), held)...)
	}},
	{"writes of a group are validated one after the other", func(f *fixture) {
		// All writers create the same tuple if it is absent; then all delete it.
		ann := viewer("1", "ann")
		release := f.hold()
		together := func(w tuplestore.Write) (succeeded int) {
			var done []<-chan outcome
			for range 20 {
				done = append(done, f.start(f.ctx, w))
			}
			release()
			for _, c := range done {
				if o := wait(f, "writers", c); o.err == nil {
					succeeded++
				} else if _, ok := errors.AsType[*tuplestore.ConflictError](o.err); !ok {
					f.Errorf("error %v, want a conflict", o.err)
				}
			}
			return succeeded
		}
		absent := tuplestore.Filter{ObjectType: "doc", ObjectID: "1", Relation: "viewer"}
		if n := together(tuplestore.Write{Absent: []tuplestore.Filter{absent}, Ops: creations(ann)}); n != 1 {
			f.Errorf("%d writers created the tuple when it was absent", n)
		}
		f.holds(ann, held)
		f.apply(remove(held))
		release = f.hold()
		if n := together(tuplestore.Write{Ops: []tuplestore.Op{remove(ann)}}); n != 1 {
			f.Errorf("%d writers deleted the one tuple", n)
		}
		f.holds(held)
	}},
	{"of conditional writes, each sees those before it", func(f *fixture) {
		takeTurns(f, f)
	}},
	{"races of conditional writes have one winner each", func(f *fixture) {
		race(f, f)
	}},
	{"of concurrent writers who replace or refuse others, one tuple is left", func(f *fixture) {
		succeed(f, f)
	}},
	{"queued writes that an older schema validated are refused after a schema change", func(f *fixture) {
		release := f.hold()
		var zero tuplestore.Revision
		var done []<-chan outcome
		for i := range 20 {
			done = append(done, f.start(f.ctx, tuplestore.Write{
				IfSchema: &zero, PutSchema: fmt.Append(nil, i), Ops: creations(viewer("1", fmt.Sprint(i))),
			}))
		}
		release()
		succeeded := -1
		for i, c := range done {
			switch o := wait(f, "writers", c); {
			case o.err == nil && succeeded < 0:
				succeeded = i
			case o.err == nil:
				f.Errorf("writers %d and %d both replaced schema 0", succeeded, i)
			case !errors.Is(o.err, tuplestore.ErrSchemaChanged):
				f.Errorf("writer %d: error %v, want ErrSchemaChanged", i, o.err)
			}
		}
		if document, put, err := f.newest().Schema(f.ctx); string(document) != fmt.Sprint(succeeded) || put != 2 || err != nil {
			f.Errorf("schema is %q put at %d (error %v), want that of writer %d at 2", document, put, err, succeeded)
		}
	}},
	{"readers see whole writes without gaps", func(f *fixture) {
		// One tuple moves from object to object: each snapshot has it once.
		f.apply(create(viewer("0", "ann")))
		writing, stop := context.WithCancel(f.ctx)
		var writers, readers sync.WaitGroup
		for w := range 4 {
			writers.Go(func() {
				for i := range 40 {
					to := fmt.Sprintf("%d.%d", w, i)
					f.mustWrite(tuplestore.Write{Ops: []tuplestore.Op{
						removeMatching(tuplestore.Filter{SubjectType: "user", SubjectID: "ann"}),
						create(viewer(to, "ann")),
					}})
				}
			})
		}
		for range 3 {
			readers.Go(func() {
				var at tuplestore.Revision
				var place tuplestore.Tuple // the tuple at that revision
				for {
					last := writing.Err() != nil
					commits, err := f.store.Changes(f.ctx, f.tenant, at, 7)
					if err != nil {
						f.Errorf("changes after %d: %v", at, err)
						return
					}
					for _, c := range commits {
						if c.Revision != at+1 {
							f.Errorf("revision %d follows %d", c.Revision, at)
							return
						}
						at = c.Revision
						to := created(c)
						want := map[tuplestore.Tuple]tuplestore.Change{to: {Tuple: to}}
						if at > 1 {
							want[place] = tuplestore.Change{Tuple: place, Deleted: true}
						}
						if got := f.netEffect(c); !maps.Equal(want, got) {
							f.Errorf("revision %d changes %v, want %v", at, got, want)
						}
						place = to
					}
					if last && len(commits) == 0 {
						if at != 161 {
							f.Errorf("the changelog ends at %d after 161 writes", at)
						}
						return
					}
					head, err := f.store.Head(f.ctx, f.tenant)
					if err != nil || head.Revision < at {
						f.Errorf("head is %d (error %v) after revision %d was seen", head.Revision, err, at)
						return
					}
					var seen []tuplestore.Tuple
					for r, err := range f.at(head.Revision).Scan(f.ctx, everything) {
						if err != nil {
							f.Errorf("scan: %v", err)
							return
						}
						seen = append(seen, r.Tuple)
					}
					if len(seen) != 1 {
						f.Errorf("revision %d has %v", head.Revision, seen)
						return
					}
				}
			})
		}
		writers.Wait()
		stop()
		readers.Wait()
	}},
	{"a queued write is withdrawn when its context ends", func(f *fixture) {
		release := f.hold()
		ctx, cancel := context.WithCancel(f.ctx)
		cancelled := f.start(ctx, tuplestore.Write{Ops: creations(viewer("1", "cancelled"))})
		patient := f.start(f.ctx, tuplestore.Write{Ops: creations(viewer("1", "patient"))})
		settle()
		cancel()
		if o := wait(f, "cancelled write, while the queue is held", cancelled); !errors.Is(o.err, context.Canceled) {
			f.Errorf("error is %v, want context.Canceled", o.err)
		}
		release()
		if o := wait(f, "patient write", patient); o.err != nil {
			f.Errorf("the write behind it: %v", o.err)
		}
		f.holds(held, viewer("1", "patient"))
	}},
	{"a cancelled context writes nothing", func(f *fixture) {
		ctx, cancel := context.WithCancel(f.ctx)
		cancel()
		if _, err := f.store.Write(ctx, f.tenant, tuplestore.Write{Ops: creations(viewer("1", "ann"))}); !errors.Is(err, context.Canceled) {
			f.Errorf("error is %v, want context.Canceled", err)
		}
		f.holds()
	}},
}

// created returns the tuple that a commit created.
func created(c tuplestore.Commit) tuplestore.Tuple {
	for _, change := range c.Changes {
		if !change.Deleted {
			return change.Tuple
		}
	}
	return tuplestore.Tuple{}
}

// mustWrite is write for goroutines: it does not end the test.
func (f *fixture) mustWrite(w tuplestore.Write) tuplestore.Result {
	result, err := f.store.Write(f.ctx, f.tenant, w)
	if err != nil {
		f.Errorf("write %+v: %v", w, err)
	}
	return result
}

// writeTogether runs 64 writers of one tenant, distributed over the stores of all fixtures,
// which share one database.
func writeTogether(through ...*fixture) {
	const writers, each = 64, 8
	f := through[0]
	revisions := make([][]tuplestore.Revision, writers)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			f := through[w%len(through)]
			for i := range each {
				mine := viewer(fmt.Sprint(w%16), fmt.Sprintf("%d.%d", w, i))
				result := f.mustWrite(tuplestore.Write{Actor: mine.Subject.ID, Ops: creations(mine)})
				revisions[w] = append(revisions[w], result.Revision)
				if i%2 > 0 {
					continue
				}
				if head, err := f.store.Head(f.ctx, f.tenant); err != nil || head.Revision < result.Revision {
					f.Errorf("head is %d (error %v) after revision %d was acknowledged", head.Revision, err, result.Revision)
				}
				for rev, want := range map[tuplestore.Revision]int{result.Revision: 1, result.Revision - 1: 0} {
					found, err := f.at(rev).Find(f.ctx, tuplestore.Lookup{Tuples: []tuplestore.Tuple{mine}})
					if err != nil || len(found) != want {
						f.Errorf("%v, created at %d, is found %d times at %d (error %v)", mine, result.Revision, len(found), rev, err)
					}
				}
			}
		})
	}
	wg.Wait()

	for w, own := range revisions {
		if !slices.IsSorted(own) {
			f.Errorf("writer %d, one write after the other, got revisions %v", w, own)
		}
	}
	all := slices.Sorted(slices.Values(slices.Concat(revisions...)))
	for i, rev := range all {
		if rev != tuplestore.Revision(i+1) {
			f.Fatalf("revisions have a gap or a repeat at %d: %v", i+1, all)
		}
	}
	for _, f := range through {
		commits := f.changes(0, writers*each+1)
		if len(commits) != writers*each {
			f.Fatalf("the changelog has %d commits, want %d", len(commits), writers*each)
		}
		for _, c := range commits {
			if len(c.Changes) != 1 || c.Changes[0].Tuple.Subject.ID != c.Actor {
				f.Fatalf("commit %d of %s has changes %+v", c.Revision, c.Actor, c.Changes)
			}
		}
	}
}

// unmet reports whether a write was refused by a precondition.
func unmet(err error) bool {
	_, ok := errors.AsType[*tuplestore.PreconditionError](err)
	return ok
}

// takeTurns runs writers that each replace the tuple of the one before by their own, once it
// exists, and attempt that until it succeeds.
func takeTurns(through ...*fixture) {
	const turns = 24
	turn := func(n int) tuplestore.Tuple { return related("turn", "now", "is", "user", fmt.Sprint(n), "") }
	must := func(n int, exists bool) tuplestore.Precondition {
		t := turn(n)
		return tuplestore.Precondition{Exists: exists, Filter: tuplestore.Filter{
			ObjectType: t.Object.Type, ObjectID: t.Object.ID, Relation: t.Relation, SubjectType: t.Subject.Type, SubjectID: t.Subject.ID,
		}}
	}
	f := through[0]
	f.apply(create(turn(0)))
	var wg sync.WaitGroup
	for n := range turns {
		wg.Go(func() {
			f := through[n%len(through)]
			w := tuplestore.Write{
				Preconditions: []tuplestore.Precondition{must(n+1, false), must(n, true)},
				Ops:           []tuplestore.Op{remove(turn(n)), create(turn(n + 1)), create(viewer("done", fmt.Sprint(n)))},
			}
			if n%3 == 0 { // in a group with needs of another kind
				w.Ops[0] = removeMatching(tuplestore.Filter{ObjectType: "turn", ObjectID: "now"})
			}
			_, err := f.store.Write(f.ctx, f.tenant, w)
			for unmet(err) {
				_, err = f.store.Write(f.ctx, f.tenant, w)
			}
			if err != nil {
				f.Errorf("writer %d: %v", n, err)
			}
		})
	}
	wg.Wait()
	f.same("turn", []tuplestore.Tuple{turn(turns)}, tuplesOf(f.scan(f.newest(), tuplestore.Filter{ObjectType: "turn"})))
	if n := len(f.scan(f.newest(), tuplestore.Filter{ObjectType: "doc"})); n != turns {
		f.Errorf("%d turns, want %d", n, turns)
	}
	if head := f.head().Revision; head != turns+1 {
		f.Errorf("%d revisions, want one for each turn", head)
	}
}

// race runs writers that all want each of some objects, which must have no relations.
func race(through ...*fixture) {
	const writers, objects = 12, 15
	var won [objects]atomic.Int64
	var wg sync.WaitGroup
	for n := range writers {
		wg.Go(func() {
			f := through[n%len(through)]
			for i := range objects {
				w := tuplestore.Write{
					Preconditions: []tuplestore.Precondition{{Filter: tuplestore.Filter{ObjectType: "doc", ObjectID: fmt.Sprint(i)}}},
					Ops:           creations(viewer(fmt.Sprint(i), fmt.Sprint(n))),
				}
				_, err := f.store.Write(f.ctx, f.tenant, w)
				if err == nil {
					won[i].Add(1)
				} else if !unmet(err) {
					f.Errorf("writer %d: %v", n, err)
				}
			}
		})
	}
	wg.Wait()
	f := through[0]
	for i := range won {
		if n := won[i].Load(); n != 1 {
			f.Errorf("object %d has %d winners, want 1", i, n)
		}
	}
	if n := len(f.scan(f.newest(), tuplestore.Filter{ObjectType: "doc"})); n != objects {
		f.Errorf("%d tuples, want %d", n, objects)
	}
}

var closeCases = []testCase{
	{"closing finishes writes in progress and refuses queued ones", func(f *fixture) {
		release := f.hold()
		queued := f.start(f.ctx, tuplestore.Write{Ops: creations(viewer("1", "queued"))})
		settle()
		closed := make(chan error, 1)
		go func() { closed <- f.store.Close() }()
		if o := wait(f, "queued write, while the queue is held", queued); !errors.Is(o.err, tuplestore.ErrClosed) {
			f.Errorf("queued write: error %v, want ErrClosed", o.err)
		}
		select {
		case err := <-closed:
			f.Errorf("closed before the write under way was finished (error %v)", err)
		case <-time.After(20 * time.Millisecond):
		}
		release()
		if err := wait(f, "close", closed); err != nil {
			f.Errorf("close: %v", err)
		}
		if _, err := f.store.Write(f.ctx, f.tenant, tuplestore.Write{Ops: creations(viewer("1", "late"))}); !errors.Is(err, tuplestore.ErrClosed) {
			f.Errorf("write after closing: error %v, want ErrClosed", err)
		}
		f.holds(held)
	}},
	{"closing twice is no error", func(f *fixture) {
		f.apply(create(viewer("1", "ann")))
		for range 2 {
			if err := f.store.Close(); err != nil {
				f.Errorf("close: %v", err)
			}
		}
	}},
}
