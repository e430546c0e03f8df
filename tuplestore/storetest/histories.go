package storetest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"stonetown/tuplestore"
)

// Random histories in a world so small that writes meet each other: now and
// then the newest snapshot, and in the end the snapshot at every revision, is
// read in every way there is and compared with the model.
var historyCases = []testCase{
	{"every revision is as the model has it, seed 1", func(f *fixture) { history(f, 1) }},
	{"every revision is as the model has it, seed 2", func(f *fixture) { history(f, 2) }},
}

func history(f *fixture, seed uint64) {
	const writes = 120
	w := world{rand.New(rand.NewPCG(seed, 0))}
	states := []state{{records: map[tuplestore.Tuple]tuplestore.Record{}}} // by revision
	for i := range writes {
		write := w.write(fmt.Sprint("actor ", i))
		before := states[len(states)-1]
		after, statuses, counts, wantErr := before.apply(write)
		result, err := f.store.Write(f.ctx, f.tenant, write)
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
			w.compare(f, after)
		}
	}
	if len(states) < writes/2 {
		f.Fatalf("only %d of %d writes changed anything: this compares too little", len(states), writes)
	}

	commits := f.changes(0, writes)
	if len(commits) != len(states)-1 {
		f.Fatalf("the changelog has %d commits, want %d", len(commits), len(states)-1)
	}
	var at []time.Time // of each revision, as the changelog has it
	at = append(at, time.Time{})
	for i, c := range commits {
		f.same(fmt.Sprintf("changes of revision %d", i+1), difference(states[i], states[i+1]), f.netEffect(c))
		at = append(at, c.At)
	}
	for _, s := range states {
		w.compare(f, s)
		for _, r := range f.scan(f.at(s.rev), everything) {
			if !r.CreatedAt.Equal(at[r.CreatedRevision]) {
				f.Fatalf("%v was created at %v, but revision %d was committed at %v", r.Tuple, r.CreatedAt, r.CreatedRevision, at[r.CreatedRevision])
			}
		}
	}
}

// world draws from few objects, relations and subjects.
type world struct{ *rand.Rand }

func pick[T any](w world, from ...T) T { return from[w.IntN(len(from))] }

func (w world) tuple() tuplestore.Tuple {
	t := presence(pick(w, "doc", "folder"), pick(w, "1", "2", "10"))
	if w.IntN(5) == 0 {
		return t
	}
	t.Relation, t.Subject = pick(w, "viewer", "editor"), w.subject()
	return t
}

func (w world) subject() tuplestore.Subject {
	switch w.IntN(5) {
	case 0:
		return tuplestore.Subject{Type: "group", ID: pick(w, "g", "h"), Relation: pick(w, "member", "owner")}
	case 1:
		return tuplestore.Subject{Type: pick(w, "user", "group"), ID: tuplestore.Wildcard}
	}
	return tuplestore.Subject{Type: pick(w, "user", "group"), ID: pick(w, "ann", "bob", "g")}
}

// filters is one filter of every kind, about random tuples.
func (w world) filters() []tuplestore.Filter {
	t, s := w.tuple(), w.subject()
	filters := []tuplestore.Filter{
		{},
		{ObjectType: t.Object.Type},
		{ObjectType: t.Object.Type, ObjectID: t.Object.ID},
		{ObjectType: t.Object.Type, Relation: t.Relation},
		{ObjectType: t.Object.Type, ObjectID: t.Object.ID, Relation: t.Relation},
		{ObjectType: t.Object.Type, ObjectID: t.Object.ID, SubjectType: s.Type},
		{ObjectType: t.Object.Type, ObjectID: t.Object.ID, Relation: t.Relation, SubjectType: s.Type, SubjectID: s.ID, SubjectRelation: s.Relation},
		{ObjectType: t.Object.Type, SubjectRelation: "member"},
		{SubjectType: s.Type, SubjectID: s.ID},
		{SubjectType: s.Type, SubjectID: s.ID, SubjectRelation: s.Relation},
		{SubjectType: s.Type, SubjectID: s.ID, ObjectType: t.Object.Type},
		{SubjectType: s.Type, SubjectID: s.ID, ObjectType: t.Object.Type, Relation: t.Relation},
		{ObjectType: t.Object.Type, Relation: t.Relation, SubjectsOutside: []tuplestore.SubjectShape{}},
		{ObjectType: t.Object.Type, Relation: t.Relation, SubjectsOutside: []tuplestore.SubjectShape{s.Shape(), w.subject().Shape()}},
	}
	for i := range filters {
		filters[i].Presence = tuplestore.PresenceFilter(w.IntN(3))
	}
	return append(filters, tuplestore.Filter{ObjectType: t.Object.Type, Presence: tuplestore.OnlyPresence, Newest: true})
}

// narrow is a filter that leaves something to delete later.
func (w world) narrow() tuplestore.Filter {
	for {
		f := pick(w, w.filters()...)
		if !f.Newest && (f.ObjectID != "" || f.SubjectID != "") {
			return f
		}
	}
}

func (w world) write(actor string) tuplestore.Write {
	write := tuplestore.Write{Actor: actor}
	for range 1 + w.IntN(4) {
		switch n := w.IntN(20); {
		case n < 14:
			write.Ops = append(write.Ops, create(w.tuple()))
		case n < 19:
			write.Ops = append(write.Ops, remove(w.tuple()))
		default:
			write.Ops = append(write.Ops, removeMatching(w.narrow()))
		}
	}
	if w.IntN(10) == 0 {
		write.Absent = append(write.Absent, w.narrow())
	}
	return write
}

// compare reads the snapshot of s.rev in every way, with random parameters.
func (w world) compare(f *fixture, s state) {
	f.Helper()
	snapshot := f.at(s.rev)
	for range 3 {
		l := tuplestore.Lookup{}
		for range w.IntN(6) {
			l.Tuples = append(l.Tuples, w.tuple())
			l.Usersets = append(l.Usersets, w.tuple().Node())
			l.All = append(l.All, w.tuple().Node())
		}
		l.Tuples = l.Tuples[:w.IntN(len(l.Tuples)+1)]
		l.All = l.All[:w.IntN(len(l.All)+1)]
		f.same(fmt.Sprintf("find %+v at revision %d", l, s.rev), s.find(l), f.find(snapshot, l))
	}
	filters := w.filters()
	for _, filter := range filters {
		want := s.list(filter)
		size := 1 + w.IntN(25)
		got := timeless(f.list(snapshot, filter, size))
		f.same(fmt.Sprintf("list %+v at revision %d in pages of %d", filter, s.rev, size), want, got)
	}
	filter := pick(w, filters[:len(filters)-1]...) // the last is in an order that only List has
	f.same(fmt.Sprintf("scan %+v at revision %d", filter, s.rev), s.list(filter), timeless(f.scan(snapshot, filter)))
}

// timeless takes the time off records, as the model has none.
func timeless(records []tuplestore.Record) []tuplestore.Record {
	for i := range records {
		records[i].CreatedAt = time.Time{}
	}
	return records
}
