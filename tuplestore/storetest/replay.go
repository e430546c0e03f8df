package storetest

import (
	"context"
	"errors"
	"sync"

	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
)

var replayCases = []testCase{
	{"a write sent again returns the first result and changes nothing", func(f *fixture) {
		ann, bob := viewer("1", "ann"), viewer("1", "bob")
		var zero tuplestore.Revision
		ran := 0
		w := tuplestore.Write{
			CommitID: "id", Actor: "a", IfSchema: &zero,
			Absent: []tuplestore.Filter{{ObjectType: "doc"}},
			Ops:    []tuplestore.Op{create(ann), create(ann), create(bob), remove(bob), removeMatching(tuplestore.Filter{ObjectType: "folder"})},
			Also:   func(context.Context, *sqldb.Tx) error { ran++; return nil },
		}
		first := f.write(w)
		f.apply(remove(ann))
		f.write(tuplestore.Write{PutSchema: []byte("schema")})
		before, ranFirst := f.head(), ran
		f.same("result of the replay", first, f.write(w))
		if ran != ranFirst {
			f.Error("Also ran again")
		}
		if after := f.head(); after != before {
			f.Errorf("the replay moved the head from %+v to %+v", before, after)
		}
		f.holds()
	}},
	{"a write that changed nothing is replayed as such", func(f *fixture) {
		ann := viewer("1", "ann")
		f.apply(create(ann))
		w := tuplestore.Write{CommitID: "id", Ops: creations(ann)}
		first := f.write(w)
		f.apply(remove(ann))
		f.same("result of the replay", first, f.write(w))
		f.holds()
	}},
	{"an update is replayed as such", func(f *fixture) {
		ann, qualifier := viewer("1", "ann"), tuplestore.Qualifier{Condition: "on_call", Context: `{"team":7}`}
		f.apply(create(ann))
		w := tuplestore.Write{CommitID: "id", Ops: []tuplestore.Op{createOn(qualifier, ann)}}
		first := f.write(w)
		f.same("statuses", []tuplestore.Status{tuplestore.Updated}, first.Statuses)
		f.apply(create(ann))
		f.same("result of the replay", first, f.write(w))
		f.same("qualifier", []tuplestore.Fact{{Tuple: ann}}, f.find(f.newest(), tuplestore.Lookup{Tuples: []tuplestore.Tuple{ann}}))
	}},
	{"a refused write may be sent again", func(f *fixture) {
		ann := viewer("1", "ann")
		w := tuplestore.Write{CommitID: "id", Ops: []tuplestore.Op{remove(ann)}}
		f.conflict(w)
		f.apply(create(ann))
		if got := f.write(w); got.Revision != 2 {
			f.Errorf("applied at revision %d, want 2", got.Revision)
		}
		f.holds()
	}},
	{"a commit ID belongs to one write", func(f *fixture) {
		w := tuplestore.Write{CommitID: "id", Ops: creations(viewer("1", "ann"))}
		f.write(w)
		for name, other := range map[string]tuplestore.Write{
			"another tuple":     {CommitID: "id", Ops: creations(viewer("1", "bob"))},
			"another op":        {CommitID: "id", Ops: []tuplestore.Op{remove(viewer("1", "ann"))}},
			"one op more":       {CommitID: "id", Ops: creations(viewer("1", "ann"), viewer("1", "ann"))},
			"nothing at all":    {CommitID: "id"},
			"a schema":          {CommitID: "id", Ops: w.Ops, PutSchema: []byte("schema")},
			"another qualifier": {CommitID: "id", Ops: []tuplestore.Op{createOn(tuplestore.Qualifier{ExpiresAt: 1}, viewer("1", "ann"))}},
			"a precondition":    {CommitID: "id", Ops: w.Ops, Absent: []tuplestore.Filter{{ObjectType: "folder"}}},
		} {
			if err := f.refuse(other); !errors.Is(err, tuplestore.ErrCommitIDReused) {
				f.Errorf("%s under the same ID: error %v, want ErrCommitIDReused", name, err)
			}
		}
		f.in("another tenant").write(tuplestore.Write{CommitID: "id", Ops: creations(viewer("1", "bob"))})
		f.holds(viewer("1", "ann"))
	}},
	{"writes without an ID are never replays", func(f *fixture) {
		ann := viewer("1", "ann")
		for want := tuplestore.Revision(1); want <= 5; want += 2 {
			if got := f.apply(create(ann)).Revision; got != want {
				f.Errorf("created at revision %d, want %d", got, want)
			}
			f.apply(remove(ann))
		}
	}},
	{"of one write sent many times at once, one is applied", func(f *fixture) {
		release := f.hold()
		w := tuplestore.Write{CommitID: "id", Ops: creations(viewer("1", "ann"))}
		var wg sync.WaitGroup
		outcomes := make([]outcome, 20)
		for i := range outcomes {
			wg.Go(func() { outcomes[i] = <-f.start(f.ctx, w) })
		}
		release()
		wg.Wait()
		for _, o := range outcomes {
			if o.err != nil || o.result.Revision != 2 || o.result.Statuses[0] != tuplestore.Created {
				f.Errorf("outcome %+v, want created at revision 2", o)
			}
		}
		if head := f.head(); head.Revision != 2 {
			f.Errorf("head is %d, want 2", head.Revision)
		}
	}},
}

var alsoCases = []testCase{
	{"it runs before the write can be seen", func(f *fixture) {
		f.apply(create(viewer("1", "ann")))
		before := f.head()
		ran := false
		f.write(tuplestore.Write{Ops: creations(viewer("1", "bob")), Also: func(ctx context.Context, _ *sqldb.Tx) error {
			ran = true
			head, err := f.store.Head(ctx, f.tenant)
			if err != nil {
				return err
			}
			if head != before {
				f.Errorf("the head is already %+v", head)
			}
			commits, err := f.store.Changes(ctx, f.tenant, before.Revision, 10)
			if err != nil {
				return err
			}
			if len(commits) > 0 {
				f.Errorf("the changelog has already %+v", commits)
			}
			return nil
		}})
		if !ran {
			f.Error("it did not run")
		}
		f.holds(viewer("1", "ann"), viewer("1", "bob"))
	}},
	{"it does not run for a refused write", func(f *fixture) {
		f.apply(create(viewer("1", "ann")))
		never := func(context.Context, *sqldb.Tx) error {
			f.Error("it ran")
			return nil
		}
		f.conflict(tuplestore.Write{Ops: []tuplestore.Op{remove(viewer("1", "bob"))}, Also: never})
		f.conflict(tuplestore.Write{Absent: []tuplestore.Filter{{ObjectType: "doc"}}, Also: never})
		f.refuse(tuplestore.Write{IfSchema: new(tuplestore.Revision(7)), Also: never})
	}},
	{"its error aborts the write", func(f *fixture) {
		sentinel := errors.New("no")
		err := f.refuse(tuplestore.Write{
			CommitID: "id", PutSchema: []byte("schema"), Ops: creations(viewer("1", "ann")),
			Also: func(context.Context, *sqldb.Tx) error { return sentinel },
		})
		if !errors.Is(err, sentinel) {
			f.Errorf("error is %v, want that of Also", err)
		}
		f.holds()
		if got := f.write(tuplestore.Write{CommitID: "id", Ops: creations(viewer("1", "bob"))}).Revision; got != 1 {
			f.Errorf("the next write took revision %d, want 1", got)
		}
	}},
	{"it runs for a write that changes nothing", func(f *fixture) {
		ran := false
		f.write(tuplestore.Write{Also: func(context.Context, *sqldb.Tx) error { ran = true; return nil }})
		if !ran {
			f.Error("it did not run")
		}
		sentinel := errors.New("no")
		if err := f.refuse(tuplestore.Write{Also: func(context.Context, *sqldb.Tx) error { return sentinel }}); !errors.Is(err, sentinel) {
			f.Errorf("error is %v, want that of Also", err)
		}
	}},
}
