package storetest

import (
	"errors"
	"fmt"
	"time"

	"stonetown/tuplestore"
)

var revisionCases = []testCase{
	{"a tenant need not be created", func(f *fixture) {
		head, document, err := f.store.Latest(f.ctx, f.tenant)
		if err != nil {
			f.Fatalf("latest: %v", err)
		}
		if head.Revision != 0 || head.SchemaRevision != 0 || document != nil {
			f.Errorf("a tenant never written is at %+v with schema %q", head, document)
		}
		if head != f.head() {
			f.Errorf("Head is %+v and Latest %+v", f.head(), head)
		}
		f.same("changes", []tuplestore.Commit{}, f.changes(0, 10))
		f.same("tuples", []tuplestore.Record{}, f.scan(f.at(0), everything))
		f.same("page", []tuplestore.Record{}, f.list(f.at(0), everything, 10))
		if f.exists(f.at(0), viewer("1", "ann")) {
			f.Error("a tuple exists in a tenant never written")
		}
		if document, put, err := f.at(0).Schema(f.ctx); document != nil || put != 0 || err != nil {
			f.Errorf("schema is %q put at %d, error %v", document, put, err)
		}
	}},
	{"revisions are dense and the first is 1", func(f *fixture) {
		for i := range 20 {
			want := tuplestore.Revision(i + 1)
			if got := f.apply(create(viewer(fmt.Sprint(i%3), fmt.Sprint(i)))).Revision; got != want {
				f.Fatalf("write %d took revision %d", want, got)
			}
			if got := f.head().Revision; got != want {
				f.Fatalf("head is %d after revision %d was acknowledged", got, want)
			}
		}
	}},
	{"a refused write takes no revision", func(f *fixture) {
		f.apply(create(viewer("1", "ann")))
		f.conflict(tuplestore.Write{Ops: []tuplestore.Op{remove(viewer("1", "bob"))}})
		if got := f.apply(create(viewer("1", "cid"))).Revision; got != 2 {
			f.Errorf("the write after a refused one took revision %d, want 2", got)
		}
	}},
	{"a write that changes nothing takes no revision", func(f *fixture) {
		ann, bob := viewer("1", "ann"), viewer("1", "bob")
		f.write(tuplestore.Write{Actor: "first", Ops: creations(ann)})
		for name, ops := range map[string][]tuplestore.Op{
			"no op":                    nil,
			"create existing":          {create(ann)},
			"create, then delete":      {create(bob), remove(bob)},
			"create, then delete all":  {create(bob), removeMatching(tuplestore.Filter{SubjectType: "user", SubjectID: "bob"})},
			"delete, then create":      {remove(ann), create(ann)},
			"delete all, then create":  {removeMatching(tuplestore.Filter{ObjectType: "doc", ObjectID: "1"}), create(ann)},
			"delete what none matches": {removeMatching(tuplestore.Filter{ObjectType: "doc", ObjectID: "2"})},
		} {
			if got := f.write(tuplestore.Write{Actor: "second", Ops: ops}).Revision; got != 1 {
				f.Errorf("%s: result at revision %d, want the newest, 1", name, got)
			}
		}
		if head := f.head(); head.Revision != 1 {
			f.Errorf("head moved to %d", head.Revision)
		}
		if n := len(f.changes(0, 10)); n != 1 {
			f.Errorf("the changelog has %d commits, want 1", n)
		}
		f.holds(ann)
		if r := f.scan(f.newest(), everything)[0]; r.CreatedRevision != 1 || r.CreatedBy != "first" {
			f.Errorf("the untouched tuple's origin became %+v", r)
		}
	}},
	{"a result reflects the write that made it a no-op", func(f *fixture) {
		f.apply(create(viewer("1", "ann")))
		f.apply(create(viewer("1", "bob")))
		if got := f.apply(create(viewer("1", "ann"))).Revision; got != 2 {
			f.Errorf("result at revision %d, want the newest, 2", got)
		}
	}},
	{"an epoch does not change", func(f *fixture) {
		result := f.apply(create(viewer("1", "ann")))
		if result.Epoch == "" || result.Epoch != f.head().Epoch {
			f.Errorf("epoch %q in the result, %q in the head", result.Epoch, f.head().Epoch)
		}
		for _, ops := range [][]tuplestore.Op{{create(viewer("1", "bob"))}, {create(viewer("1", "bob"))}} {
			if again := f.apply(ops...).Epoch; again != result.Epoch {
				f.Errorf("epoch went from %q to %q", result.Epoch, again)
			}
		}
	}},
	{"a known head is the head", func(f *fixture) {
		f.apply(create(viewer("1", "ann")))
		if _, known := f.store.KnownHead(f.tenant); !known {
			return // another process may write to this database
		}
		for i := range 5 {
			f.apply(create(viewer("2", fmt.Sprint(i))))
			if known, ok := f.store.KnownHead(f.tenant); !ok || known != f.head() {
				f.Errorf("known head is %+v (%v), head %+v", known, ok, f.head())
			}
		}
	}},
	{"known changes are the changes", func(f *fixture) {
		epoch := f.apply(create(viewer("1", "ann"))).Epoch
		if _, known := f.store.KnownChanges(f.tenant, epoch, 0); !known {
			return // nothing is kept
		}
		conditional := create(viewer("1", "ann"))
		conditional.Qualifier.Condition = "c"
		for i, w := range []tuplestore.Write{
			{Actor: "bob", Ops: []tuplestore.Op{create(viewer("2", "ann")), remove(viewer("1", "ann"))}},
			{PutSchema: []byte("schema")},
			{Ops: []tuplestore.Op{create(viewer("1", "ann"))}},
			{Ops: []tuplestore.Op{conditional}},
			{Ops: []tuplestore.Op{create(viewer("1", "ann")), removeMatching(tuplestore.Filter{ObjectType: "doc", ObjectID: "2"})}},
			{Ops: []tuplestore.Op{removeMatching(tuplestore.Filter{ObjectType: "doc", ObjectID: "9"})}}, // changes nothing
			{PutSchema: []byte{}},
		} {
			f.write(w)
			head := f.head().Revision
			for after := range head {
				known, ok := f.store.KnownChanges(f.tenant, epoch, after)
				if !ok {
					f.Fatalf("write %d: the changes after %d of %d are not known", i, after, head)
				}
				f.same(fmt.Sprintf("write %d, changes after %d", i, after), f.changes(after, 1000), known)
			}
			for _, after := range []tuplestore.Revision{head, head + 1} {
				if known, ok := f.store.KnownChanges(f.tenant, epoch, after); ok {
					f.Errorf("write %d: the changes after %d are %+v, though the head is %d", i, after, known, head)
				}
			}
		}
		if known, ok := f.store.KnownChanges("other", epoch, 0); ok {
			f.Errorf("another tenant has the changes %+v", known)
		}
		if known, ok := f.store.KnownChanges(f.tenant, "another", 0); ok {
			f.Errorf("another epoch has the changes %+v", known)
		}
	}},
	{"tenants are separate", func(f *fixture) {
		a, b := f.in("a"), f.in("b")
		shared := viewer("1", "ann")
		a.write(tuplestore.Write{Actor: "in a", Ops: creations(shared, viewer("2", "ann"))})
		a.write(tuplestore.Write{PutSchema: []byte("schema of a")})
		b.holds()
		if head := b.head(); head.Revision != 0 || head.SchemaRevision != 0 {
			f.Errorf("a write in a moved b to %+v", head)
		}
		if got := b.write(tuplestore.Write{Actor: "in b", Ops: creations(shared)}); got.Revision != 1 || got.Statuses[0] != tuplestore.Created {
			f.Errorf("the first write in b came to %+v", got)
		}
		b.apply(removeMatching(tuplestore.Filter{ObjectType: "doc"}))
		b.holds()
		a.holds(shared, viewer("2", "ann"))
		for _, g := range []*fixture{a, b} {
			for _, c := range g.changes(0, 10) {
				if c.Actor != "" && c.Actor != "in "+g.tenant {
					f.Errorf("the changelog of %s has a commit of %q", g.tenant, c.Actor)
				}
			}
		}
		if document, _, err := b.newest().Schema(f.ctx); document != nil || err != nil {
			f.Errorf("schema in b is %q, error %v", document, err)
		}
	}},
	{"a commit has an actor and a time", func(f *fixture) {
		before := time.Now().Add(-time.Minute) // the database's clock may differ
		f.write(tuplestore.Write{Actor: "user:ann", Ops: creations(viewer("1", "bob"))})
		commits := f.changes(0, 1)
		if len(commits) != 1 || commits[0].Actor != "user:ann" {
			f.Fatalf("changelog is %+v", commits)
		}
		at := commits[0].At
		if at.Before(before) || at.After(time.Now().Add(time.Minute)) {
			f.Errorf("committed at %v, which is not now", at)
		}
		r := f.scan(f.newest(), everything)[0]
		if r.CreatedBy != "user:ann" || !r.CreatedAt.Equal(at) || r.CreatedRevision != 1 {
			f.Errorf("record %+v of a commit at %v", r, at)
		}
	}},
	{"a revision is found by its time", func(f *fixture) {
		f.committed(0, time.Time{})
		if rev, _, err := f.store.RevisionAt(f.ctx, f.tenant, time.Now()); rev != 0 || err != nil {
			f.Errorf("a tenant never written is at %d, error %v", rev, err)
		}
		f.in("other").apply(create(viewer("1", "ann")))
		for i := range 20 {
			f.apply(create(viewer("1", fmt.Sprint(i))))
		}
		commits := f.changes(0, 100)
		f.revisionsAt(commits, 0)
		if _, err := f.store.CommittedAt(f.ctx, f.tenant, 21); !errors.Is(err, tuplestore.ErrRevisionUnknown) {
			f.Errorf("time of a revision beyond the head: %v, want ErrRevisionUnknown", err)
		}
	}},
	{"a revision beyond the head is unknown", func(f *fixture) {
		f.apply(create(viewer("1", "ann")))
		beyond := f.at(2)
		_, findErr := beyond.Find(f.ctx, tuplestore.Lookup{Tuples: []tuplestore.Tuple{viewer("1", "ann")}})
		_, listErr := beyond.List(f.ctx, everything, nil, 10)
		_, _, schemaErr := beyond.Schema(f.ctx)
		var scanErr error
		for _, err := range beyond.Scan(f.ctx, everything) {
			scanErr = err
		}
		for read, err := range map[string]error{"Find": findErr, "List": listErr, "Scan": scanErr, "Schema": schemaErr} {
			if !errors.Is(err, tuplestore.ErrRevisionUnknown) {
				f.Errorf("%s at revision 2 of 1: error %v, want ErrRevisionUnknown", read, err)
			}
		}
		f.apply(create(viewer("1", "bob")))
		if !f.exists(beyond, viewer("1", "bob")) {
			f.Error("the snapshot still misses its revision after it came to be")
		}
	}},
	{"changes come in order, without gaps, at most limit", func(f *fixture) {
		for i := range 7 {
			f.apply(create(viewer("1", fmt.Sprint(i))))
		}
		for after := range tuplestore.Revision(8) {
			for limit := 1; limit <= 9; limit++ {
				commits := f.changes(after, limit)
				if want := min(limit, 7-int(after)); len(commits) != want {
					f.Fatalf("changes after %d, limit %d: %d commits, want %d", after, limit, len(commits), want)
				}
				for i, c := range commits {
					rev := after + tuplestore.Revision(i) + 1
					if c.Revision != rev {
						f.Fatalf("changes after %d: commit %d is revision %d", after, i, c.Revision)
					}
					f.same("changes", []tuplestore.Change{{Tuple: viewer("1", fmt.Sprint(rev-1))}}, c.Changes)
				}
			}
		}
	}},
}

func (f *fixture) committed(rev tuplestore.Revision, want time.Time) {
	f.Helper()
	if at, err := f.store.CommittedAt(f.ctx, f.tenant, rev); err != nil || !at.Equal(want) {
		f.Errorf("revision %d committed at %v, error %v, want %v", rev, at, err, want)
	}
}

// revisionsAt compares the revision at every interesting instant with the changelog after
// revision 0. Those below the floor must be collected.
func (f *fixture) revisionsAt(commits []tuplestore.Commit, floor tuplestore.Revision) {
	f.Helper()
	check := func(at time.Time) {
		f.Helper()
		var want tuplestore.Revision
		for _, c := range commits {
			if !c.At.After(at) {
				want = c.Revision
			}
		}
		rev, epoch, err := f.store.RevisionAt(f.ctx, f.tenant, at)
		switch {
		case want < floor:
			if !errors.Is(err, tuplestore.ErrRevisionCollected) {
				f.Errorf("revision at %v below the floor %d: %d, error %v", at, floor, rev, err)
			}
		case err != nil || rev != want || epoch != f.head().Epoch:
			f.Errorf("at %v the revision is %d in %q, error %v, want %d", at, rev, epoch, err, want)
		}
	}
	for i, c := range commits {
		if i > 0 && c.At.Before(commits[i-1].At) {
			f.Errorf("revision %d was committed at %v, before the one before", c.Revision, c.At)
		}
		if c.Revision >= floor {
			f.committed(c.Revision, c.At)
		}
		for _, d := range []time.Duration{-time.Microsecond, 0, time.Microsecond} {
			check(c.At.Add(d))
		}
	}
	check(time.Unix(0, 0))
	check(time.Now().Add(time.Hour))
}
