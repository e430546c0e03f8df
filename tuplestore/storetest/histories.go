package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"stonetown/tuplestore"
)

// Random histories of few tuples, so that writes often concern the same ones. Sometimes the
// newest snapshot, and in the end the snapshot at every revision, is read in every way and
// compared with the model.
var historyCases = []testCase{
	{"every revision equals the model, seed 1", func(f *fixture) { history(1, f) }},
	{"every revision equals the model, seed 2", func(f *fixture) { history(2, f) }},
	{"every revision of writers who wait together is as the changelog has it", func(f *fixture) { concurrentHistory(f) }},
}

// history writes through one of some stores on the same data at a time. The callers of most writes
// know what existed at one of the last revisions.
func history(seed uint64, stores ...*fixture) {
	f := stores[0]
	const writes = 120
	g := generator{rand.New(rand.NewPCG(seed, 0))}
	states := []state{{records: map[tuplestore.Tuple]tuplestore.Record{}}} // by revision
	in := f
	for i := range writes {
		write := g.write(fmt.Sprint("actor ", i))
		if last := len(states) - 1; last > 0 && g.IntN(5) > 0 {
			write.Known = states[last-g.IntN(min(last, 10))].known(&write, f.head().Epoch)
		}
		if g.IntN(8) == 0 {
			in = stores[g.IntN(len(stores))]
		}
		before := states[len(states)-1]
		after, statuses, counts, wantErr := before.apply(write)
		result, err := in.store.Write(f.ctx, f.tenant, write)
		if fmt.Sprint(err) != fmt.Sprint(wantErr) {
			f.Fatalf("write %d, %+v: error %v, want %v", i, write, err, wantErr)
		}
		if err == nil {
			f.same(fmt.Sprintf("statuses of write %d, %+v", i, write), statuses, result.Statuses)
			f.same(fmt.Sprintf("counts of write %d, %+v", i, write), counts, result.Counts)
			if result.Revision != after.rev {
				f.Fatalf("write %d, %+v: revision %d, want %d", i, write, result.Revision, after.rev)
			}
		}
		if after.rev > before.rev {
			states = append(states, after)
		}
		if i%4 == 0 {
			g.compare(f, after)
		}
	}
	if len(states) < writes/2 {
		f.Fatalf("only %d of %d writes changed anything: this compares too little", len(states), writes)
	}

	commits := f.changes(0, writes)
	if len(commits) != len(states)-1 {
		f.Fatalf("the changelog has %d commits, want %d", len(commits), len(states)-1)
	}
	var at []time.Time // of each revision in the changelog
	at = append(at, time.Time{})
	for i, c := range commits {
		f.same(fmt.Sprintf("changes of revision %d", i+1), difference(states[i], states[i+1]), f.netEffect(c))
		at = append(at, c.At)
	}
	for _, s := range states {
		g.compare(f, s)
		for _, r := range f.scan(f.at(s.rev), everything) {
			if !r.CreatedAt.Equal(at[r.CreatedRevision]) {
				f.Fatalf("%v was created at %v, but revision %d was committed at %v", r.Tuple, r.CreatedAt, r.CreatedRevision, at[r.CreatedRevision])
			}
		}
	}
}

// known returns what a caller knows that has read the state.
func (s state) known(w *tuplestore.Write, epoch string) *tuplestore.Known {
	k := &tuplestore.Known{Epoch: epoch, Revision: s.rev}
	for _, op := range w.Ops {
		if r, ok := s.records[op.Tuple]; ok {
			k.Facts = append(k.Facts, r.Fact)
		}
	}
	return k
}

// concurrentHistory runs concurrent writers, through some stores on the same data, of which some
// know what existed shortly before. The store determines the order: its changelog must be
// consistent, and agree with the snapshots.
func concurrentHistory(stores ...*fixture) {
	f := stores[0]
	const writers, each = 12, 15
	var wg sync.WaitGroup
	for n := range writers {
		wg.Go(func() {
			g, in := generator{rand.New(rand.NewPCG(uint64(n), 1))}, stores[n%len(stores)]
			var head tuplestore.Head
			for i := range each {
				w := g.write(fmt.Sprintf("writer %d.%d", n, i))
				if i%3 == 0 {
					head = in.head()
				}
				if n%4 > 0 && head.Revision > 0 {
					w.Known = in.knownAt(head, &w)
				}
				_, err := in.store.Write(f.ctx, f.tenant, w)
				_, conflict := errors.AsType[*tuplestore.ConflictError](err)
				if err != nil && !conflict && !unmet(err) {
					f.Errorf("writer %d: %v", n, err)
				}
			}
		})
	}
	wg.Wait()
	commits := f.changes(0, writers*each)
	if len(commits) < writers*each/2 {
		f.Fatalf("only %d of %d writes changed anything: this compares too little", len(commits), writers*each)
	}
	s := state{records: make(map[tuplestore.Tuple]tuplestore.Record)}
	for _, c := range commits {
		s.rev++
		for t, change := range f.netEffect(c) {
			have, existed := s.records[t]
			if change.Deleted && !existed || !change.Deleted && existed && have.Qualifier == change.Qualifier {
				f.Fatalf("revision %d: %+v is no change of %+v (exists: %v)", c.Revision, change, have, existed)
			}
			if delete(s.records, t); !change.Deleted {
				s.records[t] = tuplestore.Record{
					Fact:            tuplestore.Fact{Tuple: t, Qualifier: change.Qualifier},
					CreatedRevision: c.Revision, CreatedAt: c.At, CreatedBy: c.Actor,
				}
			}
		}
		f.same(fmt.Sprintf("tuples at revision %d", s.rev), s.list(everything), f.scan(f.at(s.rev), everything))
	}
}

// knownAt reads what a caller knows at a revision.
func (f *fixture) knownAt(head tuplestore.Head, w *tuplestore.Write) *tuplestore.Known {
	var l tuplestore.Lookup
	for _, op := range w.Ops {
		l.Tuples = append(l.Tuples, op.Tuple)
	}
	facts, err := f.at(head.Revision).Find(f.ctx, l)
	if err != nil {
		f.Errorf("read what is known: %v", err)
	}
	return &tuplestore.Known{Epoch: head.Epoch, Revision: head.Revision, Facts: facts}
}

// generator draws from few objects, relations and subjects.
type generator struct{ *rand.Rand }

func pick[T any](g generator, from ...T) T { return from[g.IntN(len(from))] }

func (g generator) tuple() tuplestore.Tuple {
	t := presence(pick(g, "doc", "folder"), pick(g, "1", "2", "10"))
	if g.IntN(5) == 0 {
		return t
	}
	t.Relation, t.Subject = pick(g, "viewer", "editor"), g.subject()
	return t
}

func (g generator) subject() tuplestore.Subject {
	switch g.IntN(5) {
	case 0:
		return tuplestore.Subject{Type: "group", ID: pick(g, "g", "h"), Relation: pick(g, "member", "owner")}
	case 1:
		return tuplestore.Subject{Type: pick(g, "user", "group"), ID: tuplestore.Wildcard}
	}
	return tuplestore.Subject{Type: pick(g, "user", "group"), ID: pick(g, "ann", "bob", "g")}
}

func (g generator) qualifier() tuplestore.Qualifier {
	switch g.IntN(5) {
	case 0:
		return tuplestore.Qualifier{ExpiresAt: pick[int64](g, 1, 4102444800000000)}
	case 1:
		return tuplestore.Qualifier{Condition: pick(g, "on_call", "at_work"), Context: pick(g, "", `{"team":7}`)}
	}
	return tuplestore.Qualifier{}
}

// filters returns one filter of every kind, for random tuples.
func (g generator) filters() []tuplestore.Filter {
	t, s, condition := g.tuple(), g.subject(), pick(g, "on_call", "at_work", "never_used")
	filters := []tuplestore.Filter{
		{},
		{ObjectType: t.Object.Type},
		{ObjectType: t.Object.Type, ObjectID: t.Object.ID},
		{ObjectType: t.Object.Type, Relation: t.Relation},
		{ObjectType: t.Object.Type, ObjectID: t.Object.ID, Relation: t.Relation},
		{ObjectType: t.Object.Type, ObjectID: t.Object.ID, SubjectType: s.Type},
		{ObjectType: t.Object.Type, ObjectID: t.Object.ID, Relation: t.Relation, SubjectType: s.Type, SubjectID: s.ID, SubjectRelation: s.Relation},
		{ObjectType: t.Object.Type, SubjectRelation: "member"},
		{ObjectType: t.Object.Type, SubjectType: s.Type},
		{ObjectType: t.Object.Type, ObjectID: t.Object.ID, SubjectType: s.Type, SubjectID: s.ID},
		{ObjectType: t.Object.Type, ObjectID: t.Object.ID, Relation: t.Relation, SubjectRelation: "member"},
		{SubjectType: s.Type},
		{SubjectType: s.Type, Relation: "viewer"},
		{SubjectType: s.Type, SubjectID: s.ID},
		{SubjectType: s.Type, SubjectID: s.ID, SubjectRelation: s.Relation},
		{SubjectType: s.Type, SubjectID: s.ID, ObjectType: t.Object.Type},
		{SubjectType: s.Type, SubjectID: s.ID, ObjectType: t.Object.Type, Relation: t.Relation},
		{Condition: condition},
		{ObjectType: t.Object.Type, Condition: condition},
		{ObjectType: t.Object.Type, Relation: t.Relation, Condition: condition},
		{ObjectType: t.Object.Type, ObjectID: t.Object.ID, Condition: condition},
		{SubjectType: s.Type, SubjectID: s.ID, Condition: condition},
		{SubjectType: s.Type, SubjectID: s.ID, ObjectType: t.Object.Type, Condition: condition},
		{ObjectType: t.Object.Type, Relation: pick(g, "viewer", "editor"), Crowded: true},
		{ObjectType: t.Object.Type, Relation: t.Relation, SubjectsOutside: []tuplestore.SubjectShape{}},
		{ObjectType: t.Object.Type, Relation: t.Relation, SubjectsOutside: []tuplestore.SubjectShape{s.Shape(), g.subject().Shape()}},
	}
	for i := range filters {
		if !filters[i].Crowded {
			filters[i].Presence = tuplestore.PresenceFilter(g.IntN(3))
		}
	}
	return append(filters, tuplestore.Filter{ObjectType: t.Object.Type, Presence: tuplestore.OnlyPresence, Newest: true})
}

// narrow returns a filter that does not select all tuples.
func (g generator) narrow() tuplestore.Filter {
	for {
		f := pick(g, g.filters()...)
		if !f.Newest && (f.ObjectID != "" || f.SubjectID != "") {
			return f
		}
	}
}

func (g generator) write(actor string) tuplestore.Write {
	write := tuplestore.Write{Actor: actor}
	for range 1 + g.IntN(4) {
		switch n := g.IntN(23); {
		case n < 2:
			op := createOn(g.qualifier(), g.tuple())
			op.Kind = tuplestore.CreateNew
			write.Ops = append(write.Ops, op)
		case n < 4:
			write.Ops = append(write.Ops, tuplestore.Op{Kind: tuplestore.DeleteExisting, Tuple: g.tuple()})
		case n < 18:
			op := createOn(g.qualifier(), g.tuple())
			if !op.Tuple.IsPresence() && g.IntN(3) == 0 {
				op.Others = pick(g, tuplestore.RefuseOthers, tuplestore.ReplaceOthers, tuplestore.ReplaceOthers, tuplestore.ReplaceOthers)
			}
			write.Ops = append(write.Ops, op)
		case n < 20:
			write.Ops = append(write.Ops, expire(g.tuple(), pick[int64](g, 0, 1, 4102444800000000)))
		case n < 22: // which often conflict
			write.Ops = append(write.Ops, remove(g.tuple()))
		default:
			write.Ops = append(write.Ops, removeMatching(g.narrow()))
		}
	}
	if g.IntN(10) == 0 {
		write.Absent = append(write.Absent, g.narrow())
	}
	write.Now = pick[int64](g, 0, 1)
	for g.IntN(5) == 0 {
		write.Preconditions = append(write.Preconditions, tuplestore.Precondition{Filter: g.narrow(), Exists: g.IntN(3) > 0})
	}
	return write
}

// compare reads the snapshot of s.rev in every way, with random parameters.
func (g generator) compare(f *fixture, s state) {
	f.Helper()
	snapshot := f.at(s.rev)
	for range 3 {
		l := tuplestore.Lookup{}
		for range g.IntN(6) {
			l.Tuples = append(l.Tuples, g.tuple())
			l.Usersets = append(l.Usersets, g.tuple().Node())
			l.All = append(l.All, g.tuple().Node())
			l.Naming = append(l.Naming, g.subject().Object())
		}
		l.Tuples = l.Tuples[:g.IntN(len(l.Tuples)+1)]
		l.All = l.All[:g.IntN(len(l.All)+1)]
		l.Naming = l.Naming[:g.IntN(len(l.Naming)+1)]
		f.same(fmt.Sprintf("find %+v at revision %d", l, s.rev), s.find(l), f.find(snapshot, l))
		f.touched(snapshot, l)
		var objects []tuplestore.Object
		for range g.IntN(4) {
			objects = append(objects, g.tuple().Object)
		}
		f.findWhole(snapshot, l, objects)
	}
	f.since(s.rev)
	filters := g.filters()
	for _, filter := range filters {
		want := s.list(filter)
		size := 1 + g.IntN(25)
		got := timeless(f.list(snapshot, filter, size))
		f.same(fmt.Sprintf("list %+v at revision %d in pages of %d", filter, s.rev, size), want, got)
	}
	filter := pick(g, filters[:len(filters)-1]...) // the last has an order that only List supports
	if filter.Condition == "" && filter.SubjectsOutside == nil && !filter.Crowded && f.head().Revision == s.rev {
		want, reads := s.list(filter), 1+g.IntN(12)
		f.same(fmt.Sprintf("pages of %+v, %d examined for each", filter, reads), want, timeless(f.page(filter, 1+g.IntN(5), reads)))
	}
	f.same(fmt.Sprintf("scan %+v at revision %d", filter, s.rev), s.list(filter), timeless(f.scan(snapshot, filter)))
}

// touched compares when the tuples of a lookup changed with the changelog, if that is complete.
func (f *fixture) touched(s tuplestore.Snapshot, l tuplestore.Lookup) {
	f.Helper()
	commits, err := f.store.Changes(f.ctx, f.tenant, 0, 1_000_000)
	if errors.Is(err, tuplestore.ErrRevisionCollected) {
		return
	}
	var want tuplestore.Revision
	for _, c := range commits {
		if c.Revision <= s.Revision() && slices.ContainsFunc(c.Changes, func(c tuplestore.Change) bool { return l.Requests(c.Tuple) }) {
			want = c.Revision
		}
	}
	if got, touchedErr := s.Touched(f.ctx, l); err != nil || touchedErr != nil || got != want {
		f.Fatalf("%+v changed at %d up to %d, errors %v and %v, want %d", l, got, s.Revision(), err, touchedErr, want)
	}
}

// timeless removes the times of records, because the model has none.
func timeless(records []tuplestore.Record) []tuplestore.Record {
	for i := range records {
		records[i].CreatedAt = time.Time{}
	}
	return records
}
