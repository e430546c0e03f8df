package storetest

import (
	"fmt"
	"slices"

	"stonetown/tuplestore"
)

var snapshotCases = []testCase{
	{"a snapshot does not change", func(f *fixture) {
		f.apply(creations(presence("doc", "1"), viewer("1", "ann"), viewer("1", "bob"), viewer("2", "bob"))...)
		s := f.newest()
		before := f.scan(s, everything)
		f.apply(remove(viewer("1", "ann")), create(viewer("1", "cid")))
		f.apply(removeMatching(everything))
		f.apply(create(viewer("1", "ann")))
		f.same("tuples", before, f.scan(s, everything))
		f.same("pages", before, f.list(s, everything, 2))
		if !f.exists(s, viewer("1", "ann")) || f.exists(s, viewer("1", "cid")) {
			f.Error("later writes show")
		}
		if s.Revision() != 1 {
			f.Errorf("the snapshot of revision 1 has revision %d", s.Revision())
		}
	}},
	{"pages of a snapshot are consistent during writes", func(f *fixture) {
		var all []tuplestore.Tuple
		for i := range 30 {
			all = append(all, viewer("1", fmt.Sprintf("%02d", i)))
		}
		f.apply(creations(all...)...)
		s := f.newest()
		var got []tuplestore.Tuple
		var after *tuplestore.Record
		for i := range 10 {
			page, err := s.List(f.ctx, tuplestore.Filter{ObjectType: "doc"}, after, 3)
			if err != nil || len(page) != 3 {
				f.Fatalf("page %d has %d records, error %v", i, len(page), err)
			}
			got = append(got, tuplesOf(page)...)
			after = &page[2]
			// Deletes the page's last record, among others, and adds before and after it.
			f.apply(remove(all[3*i+2]), create(viewer("1", fmt.Sprintf("%02d+", 3*i))), create(viewer("1", fmt.Sprintf("%02d+", 3*i+2))))
		}
		f.same("tuples", all, got)
	}},
	{"finding returns only requested tuples, without duplicates", func(f *fixture) {
		member := related("doc", "1", "viewer", "group", "g", "member")
		tuples := []tuplestore.Tuple{
			presence("doc", "1"), viewer("1", "ann"), viewer("1", "bob"), viewer("1", tuplestore.Wildcard), member,
			related("doc", "1", "viewer", "group", "g", ""),
			related("doc", "1", "editor", "group", "h", "member"), related("doc", "1", "editor", "user", "ann", ""),
			viewer("2", "ann"), related("group", "g", "member", "user", "ann", ""),
		}
		f.apply(creations(tuples...)...)
		node := func(t tuplestore.Tuple) []tuplestore.Node { return []tuplestore.Node{t.Node()} }
		of := func(tuples ...tuplestore.Tuple) []tuplestore.Tuple { return tuples }
		objects := func(typ string, ids ...string) (objects []tuplestore.Object) {
			for _, id := range ids {
				objects = append(objects, tuplestore.Object{Type: typ, ID: id})
			}
			return objects
		}
		for name, c := range map[string]struct {
			lookup tuplestore.Lookup
			want   []tuplestore.Tuple
		}{
			"nothing":               {tuplestore.Lookup{}, nil},
			"tuples":                {tuplestore.Lookup{Tuples: of(viewer("1", "ann"), viewer("1", "cid"), viewer("2", "bob"))}, of(viewer("1", "ann"))},
			"a presence":            {tuplestore.Lookup{Tuples: of(presence("doc", "1"), presence("doc", "2"))}, of(presence("doc", "1"))},
			"a tuple asked twice":   {tuplestore.Lookup{Tuples: of(member, member)}, of(member)},
			"a wildcard is no glob": {tuplestore.Lookup{Tuples: of(viewer("2", tuplestore.Wildcard))}, nil},
			"usersets of a node":    {tuplestore.Lookup{Usersets: node(member)}, of(member)},
			"usersets of none":      {tuplestore.Lookup{Usersets: node(viewer("2", "ann"))}, nil},
			"all of a node":         {tuplestore.Lookup{All: node(member)}, of(tuples[1:6]...)},
			"all of unknown nodes":  {tuplestore.Lookup{All: append(node(viewer("3", "")), node(related("doc", "1", "owner", "", "", ""))...)}, nil},
			"naming a user":         {tuplestore.Lookup{Naming: objects("user", "ann")}, of(viewer("1", "ann"), tuples[7], viewer("2", "ann"), tuples[9])},
			"naming a group":        {tuplestore.Lookup{Naming: objects("group", "g")}, of(member, tuples[5])},
			"naming several":        {tuplestore.Lookup{Naming: append(objects("group", "h", "h", "i"), objects("user", "bob")...)}, of(tuples[6], viewer("1", "bob"))},
			"naming a wildcard":     {tuplestore.Lookup{Naming: objects("user", tuplestore.Wildcard)}, of(viewer("1", tuplestore.Wildcard))},
			"naming an object that is none's subject": {tuplestore.Lookup{Naming: objects("doc", "1")}, nil},
			"naming no object":                        {tuplestore.Lookup{Naming: objects("", "")}, nil},
			"the same in four ways": {
				tuplestore.Lookup{
					Tuples: of(member), Usersets: append(node(member), node(member)...), All: append(node(member), node(member)...),
					Naming: objects("group", "g", "g"),
				},
				of(tuples[1:6]...),
			},
			"different things at once": {
				tuplestore.Lookup{Tuples: of(viewer("2", "ann"), viewer("1", "bob")), Usersets: node(tuples[6]), All: node(tuples[9]), Naming: objects("group", "g")},
				of(viewer("2", "ann"), viewer("1", "bob"), tuples[6], tuples[9], member, tuples[5]),
			},
		} {
			f.same(name, sorted(c.want), f.findTuples(f.at(1), c.lookup))
		}
		f.apply(removeMatching(everything))
		f.same("all of a node at an older revision", sorted(tuples[1:6]), f.findTuples(f.at(1), tuplestore.Lookup{All: node(member)}))
		f.same("naming at an older revision", sorted(of(member, tuples[5])), f.findTuples(f.at(1), tuplestore.Lookup{Naming: objects("group", "g")}))
		f.same("naming what is gone", []tuplestore.Tuple{}, f.findTuples(f.at(2), tuplestore.Lookup{Naming: objects("group", "g")}))
		f.same("all of a node that is empty now", []tuplestore.Tuple{}, f.findTuples(f.at(2), tuplestore.Lookup{All: node(member)}))
	}},
	{"finding the usersets of a large group returns no other members", func(f *fixture) {
		const members, chunk = 5_000, 1_000
		group := tuplestore.Node{Object: tuplestore.Object{Type: "group", ID: "big"}, Relation: "member"}
		member := func(i int) tuplestore.Tuple {
			return related("group", "big", "member", "user", fmt.Sprint(i), "")
		}
		for first := 0; first < members; first += chunk {
			var ops []tuplestore.Op
			for i := range chunk {
				ops = append(ops, create(member(first+i)))
			}
			f.apply(ops...)
		}
		nested := []tuplestore.Tuple{
			related("group", "big", "member", "group", "a", "member"),
			related("group", "big", "member", "group", "b", "member"),
		}
		f.apply(creations(nested...)...)
		f.same("usersets and one member", sorted(append(nested, member(17))), f.findTuples(f.newest(), tuplestore.Lookup{
			Tuples:   []tuplestore.Tuple{member(17), member(members)},
			Usersets: []tuplestore.Node{group},
		}))
		if n := len(f.findTuples(f.newest(), tuplestore.Lookup{All: []tuplestore.Node{group}})); n != members+2 {
			f.Errorf("the group has %d tuples, want %d", n, members+2)
		}
	}},
	{"a lookup can be large", func(f *fixture) {
		const many = 3000
		var stored []tuplestore.Tuple
		var l tuplestore.Lookup
		for i := range many {
			t := viewer(fmt.Sprint(i), "ann")
			if l.Tuples = append(l.Tuples, t); i%3 == 0 {
				stored = append(stored, t)
			}
			u := related("folder", fmt.Sprint(i), "viewer", "group", "g", "member")
			if l.Usersets = append(l.Usersets, u.Node()); i%5 == 0 {
				stored = append(stored, u)
			}
			m := related("group", fmt.Sprint(i), "member", "user", "ann", "")
			if l.All = append(l.All, m.Node()); i%7 == 0 {
				stored = append(stored, m)
			}
			n := related("doc", "1", "editor", "robot", fmt.Sprint(i), "")
			if l.Naming = append(l.Naming, n.Subject.Object()); i%11 == 0 {
				stored = append(stored, n)
			}
		}
		f.apply(creations(stored...)...)
		f.same("found", sorted(stored), f.findTuples(f.newest(), l))
	}},
	{"newest first orders by revision, then by descending key", func(f *fixture) {
		var want []tuplestore.Tuple
		for _, ids := range [][]string{{"b", "a", "c"}, {"z"}, {"d", "e"}, {"A"}} {
			var ops []tuplestore.Op
			slices.Sort(ids)
			for _, id := range ids {
				ops = append(ops, create(presence("doc", id)), create(presence("folder", id)), create(viewer(id, "ann")))
				want = slices.Insert(want, 0, presence("doc", id))
			}
			f.apply(ops...)
		}
		filter := tuplestore.Filter{ObjectType: "doc", Presence: tuplestore.OnlyPresence, Newest: true}
		for size := 1; size <= len(want)+1; size++ {
			f.same(fmt.Sprintf("pages of %d", size), want, tuplesOf(f.list(f.newest(), filter, size)))
		}
		f.same("after revision 2", want[3:], tuplesOf(f.list(f.at(2), filter, 2)))
		// Deleted and registered again, it is new again.
		f.apply(remove(presence("doc", "z")))
		f.apply(create(presence("doc", "z")))
		moved := append([]tuplestore.Tuple{presence("doc", "z")}, slices.DeleteFunc(slices.Clone(want), func(t tuplestore.Tuple) bool {
			return t == presence("doc", "z")
		})...)
		f.same("after coming back", moved, tuplesOf(f.list(f.newest(), filter, 2)))
	}},
	{"a scan can be stopped", func(f *fixture) {
		f.apply(creations(viewer("1", "ann"), viewer("2", "ann"), viewer("3", "ann"))...)
		for range f.newest().Scan(f.ctx, everything) {
			break
		}
		f.holds(viewer("1", "ann"), viewer("2", "ann"), viewer("3", "ann"))
	}},
	{"a scan reads more than a page", func(f *fixture) {
		const many = 12_000
		tuples := make([]tuplestore.Tuple, many)
		for i := range tuples {
			tuples[i] = viewer(fmt.Sprint(i%100), fmt.Sprint(i))
		}
		f.apply(creations(tuples...)...)
		f.holds(tuples...)
	}},
}
