package storetest

import (
	"fmt"
	"slices"
	"strings"

	"stonetown/tuplestore"
)

// ids are texts that stores tend to handle incorrectly.
var ids = []string{
	"a", "A", "Z", "z", "0", "-", "_", " ", "  ", " leading", "trailing ", "tab\there", "line\nbreak", "\r\n",
	"\x01", "\x7f", "\x1b[31m", "a\x01b",
	"/", "//", "a/b/c", "../..", "%", "%%", "%2F", "%00", "_%_", "a_b", "a%b", "?", "$1", ":", "#", "@", "a:b#c@d", "*x", "**", "\\", "\\\\", "\\n",
	"'", "''", `"`, `""`, "`", "'; DROP TABLE tuples; --", "') OR ('1'='1", "/* */", "--", "NULL", "null", "true", "0x41", "1e3", "007", "7",
	`{"a":1}`, `["x"]`, `[`, `]`, `{}`, `{a,b}`, `"quoted,comma"`, "a,b", `\u0041`, `\x41`, "<script>", "&amp;",
	"é", "e\u0301", "ß", "ẞ", "İ", "日本語", "🙂", "👩‍👩‍👧‍👦", "\u202eevil", "\ufeff", "\u200b", "\uffff", "\U0010ffff", "ﬃ",
	strings.Repeat("x", 512), strings.Repeat("界", 170) + "xx", strings.Repeat("'", 512), strings.Repeat(`\`, 512),
	strings.Repeat("x", 511) + "y",
}

var idCases = []testCase{
	{"ids are opaque text", func(f *fixture) {
		var tuples []tuplestore.Tuple
		for _, id := range ids {
			tuples = append(
				tuples,
				presence("doc", id),
				related("doc", id, "viewer", "user", id, ""),
				related("doc", "one", "viewer", "group", id, "member"),
			)
		}
		f.write(tuplestore.Write{Actor: ids[0], Ops: creations(tuples...)})
		f.holds(tuples...)
		s := f.newest()
		f.same("found", sorted(tuples), f.findTuples(s, tuplestore.Lookup{Tuples: tuples}))
		for _, size := range []int{1, 7} {
			f.same("pages", sorted(tuples), tuplesOf(f.list(s, everything, size)))
		}
		for _, id := range ids {
			own := related("doc", id, "viewer", "user", id, "")
			grouped := related("doc", "one", "viewer", "group", id, "member")
			f.same("tuples of the object", []tuplestore.Tuple{presence("doc", id), own},
				tuplesOf(f.list(s, tuplestore.Filter{ObjectType: "doc", ObjectID: id, Presence: tuplestore.WithPresence}, 10)))
			f.same("tuples of the subject", []tuplestore.Tuple{grouped},
				tuplesOf(f.list(s, tuplestore.Filter{SubjectType: "group", SubjectID: id}, 10)))
			f.same("tuples of the node", []tuplestore.Tuple{own}, f.findTuples(s, tuplestore.Lookup{All: []tuplestore.Node{own.Node()}}))
			f.same("counts", []int{2, 1}, f.apply(
				removeMatching(tuplestore.Filter{ObjectType: "doc", ObjectID: id, Presence: tuplestore.WithPresence}),
				remove(grouped),
			).Counts)
		}
		f.holds()
		f.same("tuples at revision 1", sorted(tuples), tuplesOf(f.scan(s, everything)))
		var changed []tuplestore.Tuple
		for _, c := range f.changes(0, 1)[0].Changes {
			changed = append(changed, c.Tuple)
		}
		f.same("changes", tuples, changed)
	}},
	{"newest first orders by descending bytes", func(f *fixture) {
		var tuples []tuplestore.Tuple
		for _, id := range ids {
			tuples = append(tuples, presence("doc", id))
		}
		f.apply(creations(tuples...)...)
		want := sorted(tuples)
		slices.Reverse(want)
		filter := tuplestore.Filter{ObjectType: "doc", Presence: tuplestore.OnlyPresence, Newest: true}
		f.same("pages", want, tuplesOf(f.list(f.newest(), filter, 5)))
	}},
	{"tenants, actors, commit IDs and schemas are text too", func(f *fixture) {
		for i, id := range ids {
			g := f.in(id)
			w := tuplestore.Write{
				CommitID: id, Actor: id, PutSchema: []byte(id),
				Ops: creations(viewer(fmt.Sprint(i), "ann")),
			}
			first := g.write(w)
			f.same("replay", first, g.write(w))
			g.holds(viewer(fmt.Sprint(i), "ann"))
			if r := g.scan(g.newest(), everything)[0]; r.CreatedBy != id {
				f.Errorf("created by %q, want %q", r.CreatedBy, id)
			}
			if _, document, err := f.store.Latest(f.ctx, id); string(document) != id || err != nil {
				f.Errorf("schema is %q, want %q (error %v)", document, id, err)
			}
			if commits := g.changes(0, 10); len(commits) != 1 || commits[0].Actor != id || string(commits[0].Schema) != id {
				f.Errorf("changelog of %q is %+v", id, commits)
			}
		}
	}},
}
