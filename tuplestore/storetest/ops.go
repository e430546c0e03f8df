package storetest

import (
	"errors"
	"fmt"

	"stonetown/tuplestore"
)

var opCases = []testCase{
	{"statuses and counts are the outcome of each op", func(f *fixture) {
		ann, bob := viewer("1", "ann"), viewer("1", "bob")
		result := f.apply(
			create(ann), create(ann), create(bob), remove(bob), create(bob), create(viewer("2", "bob")),
			removeMatching(tuplestore.Filter{SubjectType: "user", SubjectID: "bob"}),
			removeMatching(tuplestore.Filter{SubjectType: "user", SubjectID: "bob"}),
			create(bob),
		)
		const c, e, d = tuplestore.Created, tuplestore.Existed, tuplestore.Deleted
		f.same("statuses", []tuplestore.Status{c, e, c, d, c, c, d, d, c}, result.Statuses)
		f.same("counts", []int{1, 0, 1, 1, 1, 1, 2, 0, 1}, result.Counts)
		f.holds(ann, bob)
		f.same("status of an existing tuple", []tuplestore.Status{e}, f.apply(create(ann)).Statuses)
	}},
	{"deleting a missing tuple is a conflict that names the op", func(f *fixture) {
		ann, bob := viewer("1", "ann"), viewer("1", "bob")
		f.apply(create(ann))
		for name, c := range map[string]struct {
			ops []tuplestore.Op
			op  int
		}{
			"never existed":            {[]tuplestore.Op{remove(bob)}, 0},
			"other relation":           {[]tuplestore.Op{remove(related("doc", "1", "editor", "user", "ann", ""))}, 0},
			"presence":                 {[]tuplestore.Op{remove(presence("doc", "1"))}, 0},
			"after other ops":          {[]tuplestore.Op{create(viewer("2", "ann")), remove(ann), remove(bob)}, 2},
			"deleted twice":            {[]tuplestore.Op{remove(ann), create(bob), remove(ann)}, 2},
			"deleted by an earlier op": {[]tuplestore.Op{removeMatching(tuplestore.Filter{ObjectType: "doc", ObjectID: "1"}), remove(ann)}, 1},
		} {
			got := f.conflict(tuplestore.Write{Ops: c.ops})
			if want := (tuplestore.ConflictError{Op: c.op, Absent: -1, Tuple: c.ops[c.op].Tuple}); got != want {
				f.Errorf("%s: conflict %+v, want %+v", name, got, want)
			}
		}
		f.holds(ann)
	}},
	{"expiring deletes only expired tuples", func(f *fixture) {
		ann, bob, cid, dan := viewer("1", "ann"), viewer("1", "bob"), viewer("1", "cid"), viewer("1", "dan")
		f.apply(create(ann), createOn(tuplestore.Qualifier{ExpiresAt: 10}, bob), createOn(tuplestore.Qualifier{ExpiresAt: 10}, cid))
		result := f.apply(expire(ann, 10), expire(bob, 10), expire(cid, 9), expire(dan, 10))
		f.same("counts", []int{0, 1, 0, 0}, result.Counts)
		f.holds(ann, cid)
		f.same("renewed meanwhile", []int{1, 0}, f.apply(createOn(tuplestore.Qualifier{ExpiresAt: 20}, cid), expire(cid, 10)).Counts)
		f.holds(ann, cid)
	}},
	{"ops can require that a tuple is new, and accept that it is missing", func(f *fixture) {
		isNew := func(t tuplestore.Tuple) tuplestore.Op { return tuplestore.Op{Kind: tuplestore.CreateNew, Tuple: t} }
		gone := func(t tuplestore.Tuple) tuplestore.Op {
			return tuplestore.Op{Kind: tuplestore.DeleteExisting, Tuple: t}
		}
		ann, bob, group := viewer("1", "ann"), viewer("1", "bob"), related("doc", "1", "viewer", "group", "g", "member")
		result := f.apply(isNew(ann), gone(ann), gone(ann), isNew(ann), create(group), gone(related("doc", "1", "viewer", "group", "g", "")))
		f.same("counts", []int{1, 1, 0, 1, 1, 0}, result.Counts)
		f.holds(ann, group)
		for name, ops := range map[string][]tuplestore.Op{
			"existing":         {isNew(ann)},
			"created before":   {isNew(bob), isNew(bob)},
			"other qualifier":  {{Kind: tuplestore.CreateNew, Tuple: ann, Qualifier: tuplestore.Qualifier{ExpiresAt: 7}}},
			"after a deletion": {remove(ann), create(ann), isNew(ann)},
		} {
			last := len(ops) - 1
			want := tuplestore.ConflictError{Op: last, Absent: -1, Tuple: ops[last].Tuple, Exists: true}
			if got := f.conflict(tuplestore.Write{Ops: ops}); got != want {
				f.Errorf("%s: conflict %+v, want %+v", name, got, want)
			}
		}
		// An expired tuple does not hold: a new one replaces it.
		f.apply(createOn(tuplestore.Qualifier{ExpiresAt: 10}, bob))
		f.conflict(tuplestore.Write{Now: 9, Ops: []tuplestore.Op{isNew(bob)}})
		f.same("statuses", []tuplestore.Status{tuplestore.Updated}, f.write(tuplestore.Write{Now: 10, Ops: []tuplestore.Op{isNew(bob)}}).Statuses)
	}},
	{"a write that fails in the middle changes nothing", func(f *fixture) {
		ann := viewer("1", "ann")
		f.apply(create(ann))
		f.conflict(tuplestore.Write{
			PutSchema: []byte("schema"),
			Ops: []tuplestore.Op{
				create(viewer("1", "bob")), remove(ann), remove(viewer("1", "cid")), create(viewer("1", "dan")),
			},
		})
		f.holds(ann)
		if document, _, err := f.newest().Schema(f.ctx); document != nil || err != nil {
			f.Errorf("schema is %q, error %v", document, err)
		}
	}},
	{"a deleted tuple can be created again", func(f *fixture) {
		ann := viewer("1", "ann")
		for i := range 4 {
			f.apply(create(ann))
			f.apply(remove(ann))
			for rev := range tuplestore.Revision(2*i + 3) {
				if got, want := f.exists(f.at(rev), ann), rev%2 == 1; got != want {
					f.Fatalf("exists at revision %d: %v, want %v", rev, got, want)
				}
			}
		}
		f.apply(create(ann))
		if r := f.scan(f.newest(), everything)[0]; r.CreatedRevision != 9 {
			f.Errorf("created at revision %d, want that of its last creation, 9", r.CreatedRevision)
		}
	}},
	{"the changelog has the net effect, each tuple once", func(f *fixture) {
		ann, bob := viewer("1", "ann"), viewer("1", "bob")
		f.apply(create(ann))
		f.apply(remove(ann), create(bob), create(ann), remove(bob), remove(ann), create(bob))
		f.same("net effect", map[tuplestore.Tuple]tuplestore.Change{ann: {Tuple: ann, Deleted: true}, bob: {Tuple: bob}}, f.netEffect(f.changes(1, 1)[0]))
	}},
	{"deleting by filter deletes exactly the tuples that match", func(f *fixture) {
		tuples := []tuplestore.Tuple{
			presence("doc", "1"), presence("doc", "2"), presence("folder", "1"),
			viewer("1", "ann"), viewer("1", "bob"), viewer("2", "ann"), viewer("1", tuplestore.Wildcard),
			related("doc", "1", "editor", "user", "ann", ""),
			related("doc", "1", "viewer", "group", "ann", "member"),
			related("doc", "1", "viewer", "group", "ann", "owner"),
			related("doc", "1", "parent", "folder", "1", ""),
			related("folder", "1", "viewer", "user", "ann", ""),
			related("group", "ann", "member", "user", "ann", ""),
		}
		for i, filter := range []tuplestore.Filter{
			{ObjectType: "doc", ObjectID: "1"},
			{ObjectType: "doc", ObjectID: "1", Presence: tuplestore.OnlyPresence},
			{ObjectType: "doc", ObjectID: "1", Presence: tuplestore.WithPresence},
			{ObjectType: "doc", ObjectID: "1", Relation: "viewer"},
			{ObjectType: "doc", ObjectID: "1", Relation: "viewer", SubjectType: "group"},
			{ObjectType: "doc", ObjectID: "1", Relation: "viewer", SubjectType: "group", SubjectID: "ann", SubjectRelation: "owner"},
			{ObjectType: "doc"},
			{ObjectType: "doc", Presence: tuplestore.WithPresence},
			{ObjectType: "doc", Relation: "viewer", SubjectsOutside: []tuplestore.SubjectShape{{Type: "user"}, {Type: "group", Relation: "member"}}},
			{SubjectType: "user", SubjectID: "ann"},
			{SubjectType: "user", SubjectID: "ann", ObjectType: "doc"},
			{SubjectType: "user", SubjectID: tuplestore.Wildcard},
			{SubjectType: "group", SubjectID: "ann"},
			{SubjectType: "group", SubjectID: "ann", SubjectRelation: "member"},
			{SubjectType: "group", SubjectID: "nobody"},
			everything,
		} {
			g := f.in(fmt.Sprint("tenant ", i))
			g.apply(creations(tuples...)...)
			var kept []tuplestore.Tuple
			for _, t := range tuples {
				if !filter.Matches(tuplestore.Fact{Tuple: t}) {
					kept = append(kept, t)
				}
			}
			if got, want := g.apply(removeMatching(filter)).Counts[0], len(tuples)-len(kept); got != want {
				f.Errorf("%+v: %d deleted, want %d", filter, got, want)
			}
			g.holds(kept...)
		}
	}},
	{"deleting by filter reflects the ops before it", func(f *fixture) {
		f.apply(creations(viewer("1", "ann"), viewer("1", "bob"))...)
		result := f.apply(
			remove(viewer("1", "ann")), create(viewer("1", "cid")), create(viewer("2", "cid")),
			removeMatching(tuplestore.Filter{ObjectType: "doc", ObjectID: "1"}),
			create(viewer("1", "dan")),
		)
		f.same("counts", []int{1, 1, 1, 2, 1}, result.Counts)
		f.holds(viewer("2", "cid"), viewer("1", "dan"))
	}},
	{"a large write has a status for each op", func(f *fixture) {
		const n, c, e, u = 300, tuplestore.Created, tuplestore.Existed, tuplestore.Updated
		user := func(i int) tuplestore.Tuple { return viewer("1", fmt.Sprintf("%03d", i)) }
		f.apply(create(presence("doc", "1")), create(user(n-1)), createOn(tuplestore.Qualifier{ExpiresAt: 10}, user(0)))
		ops := []tuplestore.Op{create(presence("doc", "1"))}
		want := []tuplestore.Status{e, u}
		for i := range n {
			ops = append(ops, create(user(i)))
			if i > 0 && i < n-1 {
				want = append(want, c)
			}
		}
		ops = append(ops, create(user(1)))
		want = append(want, e, e)
		f.same("statuses", want, f.apply(ops...).Statuses)
		f.same("revision", tuplestore.Revision(2), f.head().Revision)
		f.same("relations", n, len(f.scan(f.newest(), tuplestore.Filter{ObjectType: "doc"})))
		f.same("changes", n-1, len(f.changes(1, 10)[0].Changes))
	}},
	{"a write can be large", func(f *fixture) {
		const many = 5000
		tuples := make([]tuplestore.Tuple, many)
		for i := range tuples {
			tuples[i] = viewer(fmt.Sprint(i%7), fmt.Sprint(i))
		}
		if got := f.apply(creations(tuples...)...); got.Revision != 1 {
			f.Errorf("written at revision %d, want 1", got.Revision)
		}
		f.holds(tuples...)
		if n := len(f.changes(0, 1)[0].Changes); n != many {
			f.Errorf("the changelog has %d changes, want %d", n, many)
		}
		if n := f.apply(removeMatching(tuplestore.Filter{ObjectType: "doc"})).Counts[0]; n != many {
			f.Errorf("%d deleted, want %d", n, many)
		}
		f.holds()
	}},
}

var preconditionCases = []testCase{
	{"a precondition that fails refuses the write with a count", func(f *fixture) {
		f.apply(creations(
			presence("doc", "1"), viewer("1", "ann"), viewer("2", "ann"), viewer("1", tuplestore.Wildcard),
			related("doc", "1", "viewer", "group", "g", "member"),
		)...)
		for _, c := range []struct {
			filter tuplestore.Filter
			count  int
		}{
			{tuplestore.Filter{ObjectType: "doc", ObjectID: "1"}, 3},
			{tuplestore.Filter{ObjectType: "doc", ObjectID: "3"}, 0},
			{tuplestore.Filter{ObjectType: "doc", ObjectID: "1", Presence: tuplestore.OnlyPresence}, 1},
			{tuplestore.Filter{ObjectType: "doc", ObjectID: "2", Presence: tuplestore.OnlyPresence}, 0},
			{tuplestore.Filter{ObjectType: "doc", Presence: tuplestore.WithPresence}, 5},
			{tuplestore.Filter{ObjectType: "folder"}, 0},
			{tuplestore.Filter{SubjectType: "user", SubjectID: "ann"}, 2},
			{tuplestore.Filter{SubjectType: "group", SubjectID: "g", SubjectRelation: "member"}, 1},
			{tuplestore.Filter{SubjectType: "group", SubjectID: "g", SubjectRelation: "owner"}, 0},
			{everything, 5},
		} {
			w := tuplestore.Write{Absent: []tuplestore.Filter{c.filter}}
			if c.count == 0 {
				f.write(w)
				continue
			}
			if got, want := f.conflict(w), (tuplestore.ConflictError{Op: -1, Count: c.count}); got != want {
				f.Errorf("%+v: conflict %+v, want %+v", c.filter, got, want)
			}
		}
	}},
	{"subjects of allowed shapes do not violate a precondition", func(f *fixture) {
		f.apply(creations(
			presence("doc", "1"), viewer("1", "ann"), viewer("1", tuplestore.Wildcard),
			related("doc", "1", "viewer", "group", "g", "member"),
			related("doc", "1", "viewer", "group", "g", ""),
			related("doc", "1", "editor", "robot", "r", ""),
		)...)
		shape := func(typ, relation string, wildcard bool) tuplestore.SubjectShape {
			return tuplestore.SubjectShape{Type: typ, Relation: relation, Wildcard: wildcard}
		}
		user, anyone := shape("user", "", false), shape("user", "", true)
		members, group := shape("group", "member", false), shape("group", "", false)
		for _, c := range []struct {
			allowed []tuplestore.SubjectShape
			count   int
		}{
			{nil, 4},
			{[]tuplestore.SubjectShape{}, 4},
			{[]tuplestore.SubjectShape{user}, 3},
			{[]tuplestore.SubjectShape{anyone}, 3},
			{[]tuplestore.SubjectShape{user, anyone}, 2},
			{[]tuplestore.SubjectShape{user, anyone, members}, 1},
			{[]tuplestore.SubjectShape{user, anyone, members, group}, 0},
			{[]tuplestore.SubjectShape{shape("group", "owner", false), shape("robot", "", false)}, 4},
		} {
			w := tuplestore.Write{Absent: []tuplestore.Filter{
				{ObjectType: "folder"},
				{ObjectType: "doc", Relation: "viewer", SubjectsOutside: c.allowed},
			}}
			if c.count == 0 {
				f.write(w)
				continue
			}
			if got, want := f.conflict(w), (tuplestore.ConflictError{Op: -1, Absent: 1, Count: c.count}); got != want {
				f.Errorf("allowed %+v: conflict %+v, want %+v", c.allowed, got, want)
			}
		}
	}},
	{"the write's own ops do not count", func(f *fixture) {
		ann := viewer("1", "ann")
		absent := []tuplestore.Filter{{ObjectType: "doc", ObjectID: "1"}}
		f.write(tuplestore.Write{Absent: absent, Ops: creations(ann)})
		f.conflict(tuplestore.Write{Absent: absent, Ops: []tuplestore.Op{remove(ann)}})
		f.holds(ann)
	}},
	{"counting ends at 1,000", func(f *fixture) {
		var ops []tuplestore.Op
		for i := range 1500 {
			ops = append(ops, create(viewer("1", fmt.Sprint(i))))
		}
		f.apply(ops...)
		if got := f.conflict(tuplestore.Write{Absent: []tuplestore.Filter{{ObjectType: "doc"}}}); got.Count != 1000 {
			f.Errorf("counted %d of 1,500, want 1,000", got.Count)
		}
	}},
	{"preconditions require that tuples exist, and that none does", func(f *fixture) {
		ann, member := viewer("1", "ann"), related("doc", "1", "viewer", "group", "g", "member")
		f.apply(create(presence("doc", "1")), create(ann), create(member), createOn(tuplestore.Qualifier{ExpiresAt: 10}, viewer("2", "bob")))
		for _, c := range []struct {
			filter tuplestore.Filter
			now    int64
			exists bool
		}{
			{tuplestore.Filter{ObjectType: "doc", ObjectID: "1"}, 0, true},
			{tuplestore.Filter{ObjectType: "doc", ObjectID: "1", Relation: "viewer", SubjectType: "user", SubjectID: "ann"}, 0, true},
			{tuplestore.Filter{ObjectType: "doc", ObjectID: "1", SubjectType: "group"}, 0, true},
			{tuplestore.Filter{ObjectType: "doc", ObjectID: "1", Relation: "editor"}, 0, false},
			{tuplestore.Filter{ObjectType: "doc", ObjectID: "3"}, 0, false},
			{tuplestore.Filter{SubjectType: "user"}, 0, true},
			{tuplestore.Filter{SubjectType: "robot"}, 0, false},
			{tuplestore.Filter{SubjectType: "user", SubjectID: "ann", ObjectType: "doc"}, 0, true},
			{tuplestore.Filter{SubjectType: "group", SubjectID: "g", SubjectRelation: "owner"}, 0, false},
			{tuplestore.Filter{ObjectType: "doc", ObjectID: "2"}, 9, true},
			{tuplestore.Filter{ObjectType: "doc", ObjectID: "2"}, 10, false},
		} {
			for _, exists := range []bool{true, false} {
				w := tuplestore.Write{Now: c.now, Preconditions: []tuplestore.Precondition{
					{Filter: tuplestore.Filter{ObjectType: "doc", ObjectID: "1"}, Exists: true}, {Filter: c.filter, Exists: exists},
				}}
				if exists == c.exists {
					f.write(w)
					continue
				}
				unmet, ok := errors.AsType[*tuplestore.PreconditionError](f.refuse(w))
				if want := (tuplestore.PreconditionError{Index: 1, Revision: 1, Epoch: f.head().Epoch}); !ok || *unmet != want {
					f.Errorf("%+v: error %+v, want %+v", c, unmet, want)
				}
			}
		}
		f.write(tuplestore.Write{ // its own ops do not count
			Preconditions: []tuplestore.Precondition{{Filter: tuplestore.Filter{ObjectType: "doc", ObjectID: "1"}, Exists: true}},
			Ops:           []tuplestore.Op{remove(ann), remove(member)},
		})
	}},
	{"a write that was applied has its result although its precondition is no longer met", func(f *fixture) {
		w := tuplestore.Write{CommitID: "once", Now: 1, Ops: creations(viewer("1", "ann")), Preconditions: []tuplestore.Precondition{
			{Filter: tuplestore.Filter{ObjectType: "doc", ObjectID: "1"}},
		}}
		first := f.write(w)
		w.Now = 2
		f.same("result", first, f.write(w))
		w.Preconditions[0].Exists = true
		if err := f.refuse(w); !errors.Is(err, tuplestore.ErrCommitIDReused) {
			f.Errorf("another precondition: error %v, want ErrCommitIDReused", err)
		}
	}},
	{"preconditions come before ops", func(f *fixture) {
		f.apply(create(viewer("1", "ann")))
		got := f.conflict(tuplestore.Write{
			Absent: []tuplestore.Filter{{ObjectType: "doc"}},
			Ops:    []tuplestore.Op{remove(viewer("1", "bob"))},
		})
		if got.Op != -1 || got.Absent != 0 {
			f.Errorf("conflict %+v, want precondition 0", got)
		}
	}},
}
