package storetest

import (
	"fmt"
	"math"
	"slices"

	"stonetown/tuplestore"
)

var (
	always  = tuplestore.Qualifier{}
	onCall  = tuplestore.Qualifier{Condition: "on_call"}
	team7   = tuplestore.Qualifier{Condition: "on_call", Context: `{"team":7}`}
	expired = tuplestore.Qualifier{ExpiresAt: 1}
	atWork  = tuplestore.Qualifier{ExpiresAt: 4102444800000000, Condition: "at_work"}
)

var qualifierCases = []testCase{
	{"creating an existing tuple with another qualifier updates it", func(f *fixture) {
		ann := viewer("1", "ann")
		const c, e, d, u = tuplestore.Created, tuplestore.Existed, tuplestore.Deleted, tuplestore.Updated
		result := f.write(tuplestore.Write{Actor: "first", Ops: []tuplestore.Op{
			createOn(onCall, ann), createOn(onCall, ann), createOn(team7, ann), create(ann), create(ann), createOn(expired, ann),
			remove(ann), createOn(onCall, ann),
		}})
		f.same("statuses", []tuplestore.Status{c, e, u, u, e, u, d, c}, result.Statuses)
		f.same("counts", []int{1, 0, 1, 1, 0, 1, 1, 1}, result.Counts)

		for i, qualifier := range []tuplestore.Qualifier{team7, atWork, expired, always, onCall} {
			rev, actor := tuplestore.Revision(i+2), fmt.Sprint("actor ", i)
			result := f.write(tuplestore.Write{Actor: actor, Ops: []tuplestore.Op{createOn(qualifier, ann)}})
			f.same("status of an update", []tuplestore.Status{u}, result.Statuses)
			f.same("count of an update", []int{1}, result.Counts)
			f.same("change", []tuplestore.Change{{Tuple: ann, Qualifier: qualifier}}, f.changes(rev-1, 1)[0].Changes)
			f.same("record", []tuplestore.Record{{
				Fact: tuplestore.Fact{Tuple: ann, Qualifier: qualifier}, CreatedRevision: rev, CreatedBy: actor,
			}}, timeless(f.scan(f.newest(), everything)))
			f.same("status with an equal qualifier", []tuplestore.Status{e}, f.apply(createOn(qualifier, ann)).Statuses)
			if got := f.head().Revision; got != rev {
				f.Fatalf("head is %d after an update took revision %d", got, rev)
			}
		}
	}},
	{"a tuple is deleted with any qualifier", func(f *fixture) {
		f.apply(createOn(atWork, viewer("1", "ann")), createOn(expired, presence("doc", "1")))
		f.apply(remove(viewer("1", "ann")), remove(presence("doc", "1")))
		f.same("changes", map[tuplestore.Tuple]tuplestore.Change{
			viewer("1", "ann"):   {Tuple: viewer("1", "ann"), Deleted: true},
			presence("doc", "1"): {Tuple: presence("doc", "1"), Deleted: true},
		}, f.netEffect(f.changes(1, 1)[0]))
		f.holds()
	}},
	{"the net effect compares the qualifiers before and after a write", func(f *fixture) {
		ann, bob := viewer("1", "ann"), viewer("1", "bob")
		all := removeMatching(tuplestore.Filter{ObjectType: "doc", ObjectID: "1"})
		f.write(tuplestore.Write{Actor: "first", Ops: []tuplestore.Op{createOn(team7, ann)}})
		origin := f.scan(f.newest(), everything)
		for name, ops := range map[string][]tuplestore.Op{
			"another qualifier and back":           {create(ann), createOn(team7, ann)},
			"delete, then create on the same":      {remove(ann), createOn(team7, ann)},
			"delete all, then create on the same":  {all, createOn(team7, ann)},
			"delete, others, back":                 {remove(ann), createOn(expired, ann), createOn(team7, ann)},
			"create with a qualifier, then delete": {createOn(onCall, bob), remove(bob)},
			"create, update, then delete":          {create(bob), createOn(onCall, bob), remove(bob)},
		} {
			if got := f.write(tuplestore.Write{Actor: "second", Ops: ops}).Revision; got != 1 {
				f.Errorf("%s: result at revision %d, want the newest, 1", name, got)
			}
		}
		f.same("the untouched tuple", origin, f.scan(f.newest(), everything))
		for i, ops := range [][]tuplestore.Op{
			{remove(ann), createOn(expired, ann)},
			{createOn(always, ann), createOn(atWork, ann), createOn(onCall, ann), createOn(expired, ann), create(ann)},
			{all, createOn(team7, ann), createOn(atWork, ann)},
		} {
			rev := f.apply(ops...).Revision
			if want := tuplestore.Revision(i + 2); rev != want {
				f.Fatalf("update %d took revision %d, want %d", i, rev, want)
			}
			want := tuplestore.Change{Tuple: ann, Qualifier: ops[len(ops)-1].Qualifier}
			f.same("changes", []tuplestore.Change{want}, f.changes(rev-1, 1)[0].Changes)
		}
	}},
	{"every snapshot has the qualifier of its time", func(f *fixture) {
		member := related("doc", "1", "viewer", "group", "g", "member")
		sequence := []tuplestore.Qualifier{always, onCall, team7, onCall, expired, always, atWork}
		for _, qualifier := range sequence {
			f.apply(createOn(qualifier, member))
		}
		f.apply(remove(member))
		f.apply(createOn(onCall, member))
		for i, qualifier := range sequence {
			s, want := f.at(tuplestore.Revision(i+1)), []tuplestore.Fact{{Tuple: member, Qualifier: qualifier}}
			for name, l := range map[string]tuplestore.Lookup{
				"as a tuple":   {Tuples: []tuplestore.Tuple{member}},
				"as a userset": {Usersets: []tuplestore.Node{member.Node()}},
				"of a node":    {All: []tuplestore.Node{member.Node()}},
				"by subject":   {Naming: []tuplestore.Object{member.Subject.Object()}},
				"in all ways": {
					Tuples: []tuplestore.Tuple{member}, Usersets: []tuplestore.Node{member.Node()},
					All: []tuplestore.Node{member.Node()}, Naming: []tuplestore.Object{member.Subject.Object()},
				},
			} {
				f.same(fmt.Sprintf("found %s at revision %d", name, i+1), want, f.find(s, l))
			}
			record := []tuplestore.Record{{Fact: want[0], CreatedRevision: s.Revision()}}
			f.same(fmt.Sprintf("listed at revision %d", i+1), record, timeless(f.list(s, everything, 3)))
			f.same(fmt.Sprintf("scanned at revision %d", i+1), record, timeless(f.scan(s, everything)))
		}
		f.same("found while deleted", []tuplestore.Fact{}, f.find(f.at(8), tuplestore.Lookup{Tuples: []tuplestore.Tuple{member}}))
	}},
	{"qualifiers are stored unchanged", func(f *fixture) {
		ann := viewer("1", "ann")
		for _, qualifier := range []tuplestore.Qualifier{
			{ExpiresAt: math.MaxInt64},
			{ExpiresAt: math.MinInt64},
			{ExpiresAt: -1},
			{ExpiresAt: 1<<53 + 1},
			{Condition: "'; --"},
			{Condition: "ÜNTER_24"},
			{Context: `{"a":"\"\\\u0000","b":[1.0,1e400,null]}`},
			{Context: " {\n}\t"},
			{ExpiresAt: 7, Condition: "on_call", Context: `{"🦊":"-"}`},
		} {
			f.apply(createOn(qualifier, ann), createOn(qualifier, presence("doc", "1")))
			want := []tuplestore.Fact{{Tuple: presence("doc", "1"), Qualifier: qualifier}, {Tuple: ann, Qualifier: qualifier}}
			f.same("found", want, f.find(f.newest(), tuplestore.Lookup{Tuples: []tuplestore.Tuple{ann, presence("doc", "1")}}))
			var scanned, changed []tuplestore.Fact
			for _, r := range f.scan(f.newest(), everything) {
				scanned = append(scanned, r.Fact)
			}
			f.same("scanned", want, scanned)
			for _, c := range f.changes(f.head().Revision-1, 1)[0].Changes {
				changed = append(changed, tuplestore.Fact{Tuple: c.Tuple, Qualifier: c.Qualifier})
			}
			slices.SortFunc(changed, compareFacts)
			f.same("changes", want, changed)
		}
	}},
	{"an expired tuple exists as any other", func(f *fixture) {
		ann := viewer("1", "ann")
		f.apply(createOn(expired, ann))
		f.holds(ann)
		f.same("status of creating it again", []tuplestore.Status{tuplestore.Existed}, f.apply(createOn(expired, ann)).Statuses)
		if got := f.conflict(tuplestore.Write{Absent: []tuplestore.Filter{{ObjectType: "doc"}}}); got.Count != 1 {
			f.Errorf("conflict %+v, want that of one tuple", got)
		}
		f.apply(remove(ann))
		f.holds()
	}},
	{"filters select by condition", func(f *fixture) {
		f.apply(
			create(viewer("1", "ann")), createOn(onCall, viewer("1", "bob")), createOn(team7, viewer("2", "bob")),
			createOn(atWork, viewer("3", "bob")), createOn(expired, viewer("4", "bob")),
			createOn(onCall, related("folder", "1", "viewer", "user", "bob", "")),
		)
		f.apply(create(viewer("1", "bob")), remove(viewer("2", "bob")), createOn(onCall, viewer("3", "bob")))
		filter := tuplestore.Filter{ObjectType: "doc", Condition: "on_call"}
		for size := 1; size <= 3; size++ {
			f.same("before", []tuplestore.Tuple{viewer("1", "bob"), viewer("2", "bob")}, tuplesOf(f.list(f.at(1), filter, size)))
			f.same("afterwards", []tuplestore.Tuple{viewer("3", "bob")}, tuplesOf(f.list(f.at(2), filter, size)))
		}
		for _, c := range []struct {
			filter tuplestore.Filter
			count  int
		}{
			{filter, 1},
			{tuplestore.Filter{ObjectType: "doc", ObjectID: "1", Condition: "on_call"}, 0},
			{tuplestore.Filter{ObjectType: "doc", ObjectID: "3", Condition: "on_call"}, 1},
			{tuplestore.Filter{ObjectType: "doc", Condition: "at_work"}, 0},
			{tuplestore.Filter{ObjectType: "doc", Condition: "on_cal"}, 0},
			{tuplestore.Filter{Condition: "on_call"}, 2},
			{tuplestore.Filter{SubjectType: "user", SubjectID: "bob", Condition: "on_call"}, 2},
			{tuplestore.Filter{SubjectType: "user", SubjectID: "ann", Condition: "on_call"}, 0},
		} {
			w := tuplestore.Write{Absent: []tuplestore.Filter{c.filter}}
			if c.count == 0 {
				f.write(w)
			} else if got, want := f.conflict(w), (tuplestore.ConflictError{Op: -1, Count: c.count}); got != want {
				f.Errorf("%+v: conflict %+v, want %+v", c.filter, got, want)
			}
		}
		// An op deletes what the ops before it left.
		result := f.apply(createOn(team7, viewer("1", "ann")), create(viewer("3", "bob")), removeMatching(filter))
		f.same("counts", []int{1, 1, 1}, result.Counts)
		f.holds(viewer("1", "bob"), viewer("3", "bob"), viewer("4", "bob"), related("folder", "1", "viewer", "user", "bob", ""))
	}},
	{"writes of a group update one after the other", func(f *fixture) {
		ann := viewer("1", "ann")
		release := f.hold()
		var done []<-chan outcome
		for i := range 30 {
			w := tuplestore.Write{Actor: fmt.Sprint(i), Ops: []tuplestore.Op{createOn(tuplestore.Qualifier{ExpiresAt: int64(i + 1)}, ann)}}
			if i%5 == 4 {
				w.Ops = []tuplestore.Op{removeMatching(tuplestore.Filter{ObjectType: "doc", ObjectID: "1"})}
			}
			done = append(done, f.start(f.ctx, w))
		}
		release()
		results := make(map[tuplestore.Revision]tuplestore.Result) // by revision, of writes that took one
		for i, c := range done {
			o := wait(f, "writers", c)
			if o.err != nil {
				f.Fatalf("writer %d: %v", i, o.err)
			}
			if o.result.Counts[0] > 0 {
				results[o.result.Revision] = o.result
			}
		}
		exists := false
		for _, c := range f.changes(1, 30) {
			change, result := c.Changes[0], results[c.Revision]
			want := tuplestore.Created
			switch {
			case change.Deleted:
				want = tuplestore.Deleted
			case exists:
				want = tuplestore.Updated
			}
			if len(result.Statuses) == 0 || result.Statuses[0] != want {
				f.Errorf("revision %d, by %s, came to %+v, want status %d", c.Revision, c.Actor, result, want)
			}
			found := f.find(f.at(c.Revision), tuplestore.Lookup{Tuples: []tuplestore.Tuple{ann}})
			if exists = !change.Deleted; exists {
				f.same("found", []tuplestore.Fact{{Tuple: ann, Qualifier: change.Qualifier}}, found)
			} else {
				f.same("found", []tuplestore.Fact{}, found)
			}
			delete(results, c.Revision)
		}
		if len(results) > 0 {
			f.Errorf("the changelog lacks %+v", results)
		}
	}},
}
