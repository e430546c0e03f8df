package storetest

import (
	"fmt"
	"slices"

	"stonetown/tuplestore"
)

// findWhole compares FindWhole with Find and List of the same snapshot.
func (f *fixture) findWhole(s tuplestore.Snapshot, l tuplestore.Lookup, objects []tuplestore.Object) {
	f.Helper()
	whole, err := s.(tuplestore.WholeFinder).FindWhole(f.ctx, l, objects)
	if err != nil {
		f.Fatalf("find objects at revision %d: %v", s.Revision(), err)
	}
	if isNewest := s.Revision() == f.head().Revision; whole.Newest != isNewest {
		f.Fatalf("revision %d: newest %v, want %v", s.Revision(), whole.Newest, isNewest)
	}
	if !whole.Newest {
		if whole.Found != nil || whole.Objects != nil {
			f.Fatalf("%+v at revision %d, which is not the newest", whole, s.Revision())
		}
		return
	}
	slices.SortFunc(whole.Found, compareFacts)
	f.same(fmt.Sprintf("find %+v with objects", l), f.find(s, l), slices.Compact(whole.Found))
	if len(whole.Objects) != len(objects) {
		f.Fatalf("%d objects, want %d", len(whole.Objects), len(objects))
	}
	for i, o := range objects {
		got := whole.Objects[i]
		var want []tuplestore.Fact
		for _, r := range f.scan(s, tuplestore.Filter{ObjectType: o.Type, ObjectID: o.ID, Presence: tuplestore.WithPresence}) {
			want = append(want, r.Fact)
		}
		larger := len(want) > tuplestore.MaxWhole
		if larger {
			want = nil
		}
		slices.SortFunc(got.Facts, compareFacts)
		if f.same(fmt.Sprintf("tuples of %s", o), want, got.Facts); got.Larger != larger {
			f.Fatalf("%s: larger %v, want %v", o, got.Larger, larger)
		}
	}
}

// since compares what changed after a revision with the changelog, if that is complete.
func (f *fixture) since(after tuplestore.Revision) {
	f.Helper()
	head, changed, complete, err := f.store.Since(f.ctx, f.tenant, after)
	if err != nil {
		f.Fatal(err)
	}
	f.same("head", f.head(), head)
	if !complete {
		if changed != nil {
			f.Fatalf("%d tuples of an incomplete result", len(changed))
		}
		return
	}
	var want []tuplestore.Tuple
	for _, c := range f.changes(after, 1_000_000) {
		for _, change := range c.Changes {
			want = append(want, change.Tuple)
		}
	}
	f.same(fmt.Sprintf("changed after %d", after), sorted(want), sorted(changed))
}

var wholeCases = []testCase{
	{"objects are found as a whole up to a size, and only at the newest revision", func(f *fixture) {
		objects := []tuplestore.Object{{Type: "doc", ID: "none"}}
		for _, n := range []int{1, tuplestore.MaxWhole - 1, tuplestore.MaxWhole, 10 * tuplestore.MaxWhole} {
			o := tuplestore.Object{Type: "doc", ID: fmt.Sprint(n)}
			ops := []tuplestore.Op{create(tuplestore.Presence(o))}
			for i := range n {
				ops = append(ops, create(related(o.Type, o.ID, "viewer", "user", fmt.Sprint(i), "")))
			}
			f.apply(ops...)
			objects = append(objects, o)
		}
		l := tuplestore.Lookup{
			Tuples: []tuplestore.Tuple{viewer("640", "7"), viewer("640", "none"), tuplestore.Presence(objects[4])},
			All:    []tuplestore.Node{viewer("63", "").Node()},
		}
		f.findWhole(f.newest(), l, objects)
		f.findWhole(f.newest(), tuplestore.Lookup{}, objects[:3])
		f.findWhole(f.newest(), l, nil)
		f.findWhole(f.at(1), l, objects)
		f.in("tnt_none").findWhole(f.in("tnt_none").at(0), l, objects)
		if _, err := f.at(99).(tuplestore.WholeFinder).FindWhole(f.ctx, l, objects); err == nil {
			f.Error("objects of a revision beyond the head were found")
		}
	}},
	{"what has changed since a revision is complete or said not to be", func(f *fixture) {
		f.since(0)
		f.apply(create(viewer("1", "ann")))
		f.apply(create(viewer("1", "bob")), create(viewer("2", "bob")))
		f.apply(remove(viewer("1", "ann")))
		for after := range tuplestore.Revision(4) {
			if f.since(after); !f.complete(after) {
				f.Errorf("a few changes after %d are not complete", after)
			}
		}
		if f.complete(4) {
			f.Error("a revision beyond the head is one of another history")
		}
		var ops []tuplestore.Op
		for i := range 5000 {
			ops = append(ops, create(viewer(fmt.Sprint("large", i), "ann")))
		}
		f.apply(ops...)
		f.since(3)
		for i := range 200 {
			f.apply(create(viewer(fmt.Sprint("many", i), "ann")))
		}
		f.since(0)
		if f.complete(4) {
			f.Error("hundreds of commits are complete")
		}
	}},
}

func (f *fixture) complete(after tuplestore.Revision) bool {
	_, _, complete, err := f.store.Since(f.ctx, f.tenant, after)
	if err != nil {
		f.Fatal(err)
	}
	return complete
}
