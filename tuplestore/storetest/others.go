package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"stonetown/tuplestore"
)

func replacing(t tuplestore.Tuple) tuplestore.Op {
	return tuplestore.Op{Kind: tuplestore.Create, Tuple: t, Others: tuplestore.ReplaceOthers}
}

func refusing(t tuplestore.Tuple) tuplestore.Op {
	return tuplestore.Op{Kind: tuplestore.Create, Tuple: t, Others: tuplestore.RefuseOthers}
}

var otherCases = []testCase{
	{"a tuple replaces the others of its node", func(f *fixture) {
		ann, bob, group := viewer("1", "ann"), viewer("1", "bob"), related("doc", "1", "viewer", "group", "g", "member")
		near := []tuplestore.Tuple{viewer("2", "ann"), related("doc", "1", "editor", "user", "ann", ""), presence("doc", "1")}
		f.apply(creations(near...)...)
		const c, e, u, r = tuplestore.Created, tuplestore.Existed, tuplestore.Updated, tuplestore.Replaced
		result := f.apply(replacing(ann), replacing(ann), replacing(bob), replacing(group), createOn(onCall, bob), replacing(bob))
		f.same("statuses", []tuplestore.Status{c, e, r, r, c, r}, result.Statuses)
		f.same("counts", []int{1, 0, 2, 2, 1, 2}, result.Counts)
		f.same("replaced", map[int][]tuplestore.Tuple{2: {ann}, 3: {bob}, 5: {group}}, result.Replaced)
		f.holds(append(near, bob)...)
		result = f.apply(replacing(ann))
		f.same("replaced", map[int][]tuplestore.Tuple{0: {bob}}, result.Replaced)
		f.same("net effect", map[tuplestore.Tuple]tuplestore.Change{ann: {Tuple: ann}, bob: {Tuple: bob, Deleted: true}}, f.netEffect(f.changes(2, 1)[0]))
		onCallAnn := tuplestore.Op{Tuple: ann, Qualifier: onCall, Others: tuplestore.ReplaceOthers}
		f.same("statuses", []tuplestore.Status{u}, f.apply(onCallAnn).Statuses)
		f.holds(append(near, ann)...)
	}},
	{"a second tuple of a node is refused, and named", func(f *fixture) {
		ann, bob := viewer("1", "ann"), viewer("1", "bob")
		f.apply(refusing(ann))
		for name, ops := range map[string][]tuplestore.Op{
			"stored":        {refusing(bob)},
			"created again": {remove(ann), create(ann), refusing(bob)},
			"userset":       {refusing(related("doc", "1", "viewer", "user", "ann", "friend"))},
			"not new":       {{Kind: tuplestore.CreateNew, Tuple: bob, Others: tuplestore.RefuseOthers}},
		} {
			want := tuplestore.ConflictError{Op: len(ops) - 1, Absent: -1, Tuple: ann, Second: true}
			if got := f.conflict(tuplestore.Write{Ops: ops}); got != want {
				f.Errorf("%s: conflict %+v, want %+v", name, got, want)
			}
		}
		got := f.conflict(tuplestore.Write{Ops: []tuplestore.Op{refusing(viewer("2", "ann")), refusing(viewer("2", "bob"))}})
		if want := (tuplestore.ConflictError{Op: 1, Absent: -1, Tuple: viewer("2", "ann"), Second: true}); got != want {
			f.Errorf("in one write: conflict %+v, want %+v", got, want)
		}
		f.same("statuses", []tuplestore.Status{tuplestore.Existed}, f.apply(refusing(ann)).Statuses)
		f.apply(remove(ann), refusing(bob))
		f.holds(bob)
	}},
	{"an expired tuple is no second one, and ends", func(f *fixture) {
		ann, bob := viewer("1", "ann"), viewer("1", "bob")
		f.apply(createOn(tuplestore.Qualifier{ExpiresAt: 10}, ann))
		f.conflict(tuplestore.Write{Now: 9, Ops: []tuplestore.Op{refusing(bob)}})
		result := f.write(tuplestore.Write{Now: 10, Ops: []tuplestore.Op{refusing(bob)}})
		f.same("statuses", []tuplestore.Status{tuplestore.Replaced}, result.Statuses)
		f.holds(bob)
	}},
	{"a replacement that is sent again changes nothing", func(f *fixture) {
		ann, bob := viewer("1", "ann"), viewer("1", "bob")
		f.apply(create(ann))
		w := tuplestore.Write{CommitID: "once", Ops: []tuplestore.Op{replacing(bob)}}
		first := f.write(w)
		f.apply(remove(bob))
		again := f.write(w)
		f.same("statuses", first.Statuses, again.Statuses)
		f.same("counts", first.Counts, again.Counts)
		f.holds()
		w.Ops = []tuplestore.Op{refusing(bob)}
		if _, err := f.store.Write(f.ctx, f.tenant, w); !errors.Is(err, tuplestore.ErrCommitIDReused) {
			f.Errorf("error %v, want ErrCommitIDReused", err)
		}
	}},
	{"a write can require that no node is crowded", func(f *fixture) {
		alone := tuplestore.Write{
			Alone: true, Ops: creations(presence("doc", "9")),
			Absent: []tuplestore.Filter{{ObjectType: "doc", Relation: "viewer", Crowded: true}},
		}
		f.apply(creations(viewer("1", "ann"), viewer("2", "ann"), related("doc", "1", "editor", "user", "bob", ""),
			related("doc", "2", "editor", "user", "bob", ""), related("doc", "2", "editor", "user", "cid", ""), related("team", "1", "viewer", "user", "bob", ""))...)
		f.write(alone)
		f.apply(creations(viewer("1", "bob"), viewer("1", "cid"), related("doc", "2", "viewer", "user", "ann", "friend"))...)
		if got := f.conflict(alone); got.Absent != 0 || got.Count != 5 {
			f.Errorf("conflict %+v, want 5 tuples of two nodes", got)
		}
		f.apply(remove(viewer("1", "ann")), remove(viewer("1", "bob")), remove(viewer("2", "ann")))
		f.write(alone)
	}},
	{"many crowded nodes are counted up to a limit", func(f *fixture) {
		var ops []tuplestore.Op
		for i := range 1100 {
			ops = append(ops, create(viewer(fmt.Sprint(i), "ann")), create(viewer(fmt.Sprint(i), "bob")))
		}
		f.apply(ops...)
		got := f.conflict(tuplestore.Write{Alone: true, Absent: []tuplestore.Filter{{ObjectType: "doc", Relation: "viewer", Crowded: true}}})
		f.same("count", 1000, got.Count)
	}},
}

// succeed runs writers that replace the tuple of a node, or create it if there is none. There is
// never more than one, as the changelog shows.
func succeed(through ...*fixture) {
	const writers, each = 16, 20
	var replaced, created atomic.Int64
	var wg sync.WaitGroup
	for n := range writers {
		wg.Go(func() {
			f := through[n%len(through)]
			for i := range each {
				me := viewer("now", fmt.Sprintf("%d.%d", n, i))
				op := replacing(me)
				if n%2 == 0 {
					op = refusing(me)
				}
				result, err := f.store.Write(f.ctx, f.tenant, tuplestore.Write{Ops: []tuplestore.Op{op}})
				conflict, second := errors.AsType[*tuplestore.ConflictError](err)
				switch {
				case second && conflict.Second && n%2 == 0:
				case err != nil:
					f.Errorf("writer %d: %v", n, err)
				case result.Statuses[0] == tuplestore.Replaced:
					replaced.Add(1)
				default:
					created.Add(1)
				}
				if i%5 == n%5 {
					f.mustWrite(tuplestore.Write{Ops: []tuplestore.Op{removeMatching(tuplestore.Filter{ObjectType: "doc", ObjectID: "now"})}})
				}
			}
		})
	}
	wg.Wait()
	f := through[0]
	holds := map[tuplestore.Tuple]bool{}
	for _, c := range f.changes(0, 2*writers*each) {
		for t, change := range f.netEffect(c) {
			if delete(holds, t); !change.Deleted {
				holds[t] = true
			}
		}
		if len(holds) > 1 {
			f.Fatalf("revision %d has %d tuples: %v", c.Revision, len(holds), holds)
		}
	}
	if replaced.Load() == 0 || created.Load() == 0 {
		f.Errorf("%d replaced and %d created: this compares too little", replaced.Load(), created.Load())
	}
}
