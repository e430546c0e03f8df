package apply

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"stonetown/tuplestore"
)

type factSet map[tuplestore.Tuple]tuplestore.Qualifier

func (s factSet) matching(f tuplestore.Filter) []tuplestore.Fact {
	var found []tuplestore.Fact
	for t, qualifier := range s {
		if fact := (tuplestore.Fact{Tuple: t, Qualifier: qualifier}); f.Matches(fact) {
			found = append(found, fact)
		}
	}
	slices.SortFunc(found, func(a, b tuplestore.Fact) int { return a.Tuple.Compare(b.Tuple) })
	return found
}

// holding returns the facts that match and have not expired.
func (s factSet) holding(f tuplestore.Filter, now int64) []tuplestore.Fact {
	return slices.DeleteFunc(s.matching(f), func(f tuplestore.Fact) bool { return f.ExpiresAt != 0 && f.ExpiresAt <= now })
}

// load reads only the stored tuples that needs requires.
func load(stored factSet, needs Needs, head tuplestore.Head) *View {
	v := NewView(head)
	for _, t := range needs.Tuples {
		if qualifier, ok := stored[t]; ok {
			v.Add(tuplestore.Fact{Tuple: t, Qualifier: qualifier})
		}
	}
	for _, f := range needs.Matching {
		v.Add(stored.matching(f)...)
	}
	limit := needs.AbsentLimit(v.Len())
	for _, f := range needs.Absent {
		found := stored.matching(f)
		v.Add(found[:min(limit, len(found))]...)
	}
	var seen *View
	if len(needs.Matching) > 0 {
		seen = v
	}
	for _, e := range needs.Existing {
		limit := needs.ExistingLimit(e, seen)
		found := stored.holding(e.Filter, e.Now)
		v.Add(found[:min(limit, len(found))]...)
	}
	return v
}

// effect is the effect of a write on a whole tenant, computed in the naive way: it applies
// op after op to a copy, and compares the states.
type effect struct {
	after    factSet
	statuses []tuplestore.Status
	counts   []int
	replaced map[int][]tuplestore.Tuple
	changes  map[tuplestore.Tuple]tuplestore.Change
	err      error
}

func plainly(before factSet, head tuplestore.Head, w tuplestore.Write) effect {
	if w.IfSchema != nil && *w.IfSchema != head.SchemaRevision {
		return effect{err: tuplestore.ErrSchemaChanged}
	}
	for i, f := range w.Absent {
		if n := len(before.matching(f)); n > 0 {
			return effect{err: &tuplestore.ConflictError{Op: -1, Absent: i, Count: min(n, MaxCount)}}
		}
	}
	for i, p := range w.Preconditions {
		if len(before.holding(p.Filter, w.Now)) > 0 != p.Exists {
			return effect{err: &tuplestore.PreconditionError{Index: i, Revision: head.Revision, Epoch: head.Epoch}}
		}
	}
	o := effect{after: maps.Clone(before), replaced: map[int][]tuplestore.Tuple{}, changes: map[tuplestore.Tuple]tuplestore.Change{}}
	for i, op := range w.Ops {
		status, count := tuplestore.Deleted, 1
		switch op.Kind {
		case tuplestore.Create, tuplestore.CreateNew:
			qualifier, exists := o.after[op.Tuple]
			switch {
			case op.Kind == tuplestore.CreateNew && exists && (qualifier.ExpiresAt == 0 || qualifier.ExpiresAt > w.Now):
				return effect{err: &tuplestore.ConflictError{Op: i, Absent: -1, Tuple: op.Tuple, Exists: true}}
			case !exists:
				status = tuplestore.Created
			case qualifier != op.Qualifier:
				status = tuplestore.Updated
			default:
				status, count = tuplestore.Existed, 0
			}
			for _, other := range o.after.matching(tuplestore.Filter{ObjectType: op.Tuple.Object.Type, ObjectID: op.Tuple.Object.ID, Relation: op.Tuple.Relation}) {
				if op.Others == tuplestore.KeepOthers || other.Tuple == op.Tuple {
					continue
				}
				if op.Others == tuplestore.RefuseOthers && (other.ExpiresAt == 0 || other.ExpiresAt > w.Now) {
					return effect{err: &tuplestore.ConflictError{Op: i, Absent: -1, Tuple: other.Tuple, Second: true}}
				}
				delete(o.after, other.Tuple)
				status = tuplestore.Replaced
				count++
				o.replaced[i] = append(o.replaced[i], other.Tuple)
			}
			o.after[op.Tuple] = op.Qualifier
		case tuplestore.Delete:
			if _, exists := o.after[op.Tuple]; !exists {
				return effect{err: &tuplestore.ConflictError{Op: i, Absent: -1, Tuple: op.Tuple}}
			}
			delete(o.after, op.Tuple)
		case tuplestore.DeleteExisting:
			if _, exists := o.after[op.Tuple]; !exists {
				count = 0
			}
			delete(o.after, op.Tuple)
		case tuplestore.DeleteMatching:
			found := o.after.matching(op.Match)
			count = len(found)
			for _, f := range found {
				delete(o.after, f.Tuple)
			}
		case tuplestore.Expire:
			before := o.after[op.Tuple].ExpiresAt
			if count = 0; before != 0 && before <= op.Qualifier.ExpiresAt {
				delete(o.after, op.Tuple)
				count = 1
			}
		}
		o.statuses, o.counts = append(o.statuses, status), append(o.counts, count)
	}
	for t := range before {
		if _, exists := o.after[t]; !exists {
			o.changes[t] = tuplestore.Change{Tuple: t, Deleted: true}
		}
	}
	for t, qualifier := range o.after {
		if had, existed := before[t]; !existed || had != qualifier {
			o.changes[t] = tuplestore.Change{Tuple: t, Qualifier: qualifier}
		}
	}
	return o
}

// A small domain, so that writes often concern the same tuples.
var (
	types     = rapid.SampledFrom([]string{"doc", "folder"})
	ids       = rapid.SampledFrom([]string{"1", "2", "3"})
	relations = rapid.SampledFrom([]string{"viewer", "editor"})
	subjects  = rapid.SampledFrom([]tuplestore.Subject{
		{Type: "user", ID: "u"},
		{Type: "user", ID: tuplestore.Wildcard},
		{Type: "group", ID: "g", Relation: "member"},
	})
	tuples = rapid.Custom(func(t *rapid.T) tuplestore.Tuple {
		tuple := tuplestore.Presence(tuplestore.Object{Type: types.Draw(t, "type"), ID: ids.Draw(t, "id")})
		if rapid.IntRange(0, 3).Draw(t, "presence") > 0 {
			tuple.Relation, tuple.Subject = relations.Draw(t, "relation"), subjects.Draw(t, "subject")
		}
		return tuple
	})
	qualifier = rapid.SampledFrom([]tuplestore.Qualifier{
		{}, {}, {ExpiresAt: 1}, {ExpiresAt: 2}, {Condition: "c"}, {Condition: "d", Context: `{"a":1}`}, {Condition: "d"},
	})
	filters = rapid.Custom(func(t *rapid.T) tuplestore.Filter {
		f := tuplestore.Filter{Presence: rapid.SampledFrom([]tuplestore.PresenceFilter{
			tuplestore.WithoutPresence, tuplestore.OnlyPresence, tuplestore.WithPresence,
		}).Draw(t, "presence")}
		sample := tuples.Draw(t, "sample")
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			f.ObjectType = sample.Object.Type
		case 1:
			f.ObjectType, f.ObjectID = sample.Object.Type, sample.Object.ID
		case 2:
			f.ObjectType, f.Relation = sample.Object.Type, sample.Relation
			f.SubjectsOutside = []tuplestore.SubjectShape{{Type: "user"}}
		case 3:
			s := subjects.Draw(t, "subject")
			f.SubjectType, f.SubjectID, f.SubjectRelation = s.Type, s.ID, s.Relation
		}
		if rapid.IntRange(0, 3).Draw(t, "by condition") == 0 {
			f.Condition = rapid.SampledFrom([]string{"c", "d", "e"}).Draw(t, "condition")
		}
		return f
	})
	writes = rapid.Custom(func(t *rapid.T) tuplestore.Write {
		var w tuplestore.Write
		for range rapid.IntRange(0, 4).Draw(t, "ops") {
			op := tuplestore.Op{Kind: tuplestore.OpKind(rapid.IntRange(0, 5).Draw(t, "kind"))}
			if op.Kind == tuplestore.DeleteMatching {
				op.Match = filters.Draw(t, "match")
			} else {
				op.Tuple = tuples.Draw(t, "tuple")
			}
			if op.Kind == tuplestore.Create || op.Kind == tuplestore.CreateNew || op.Kind == tuplestore.Expire {
				op.Qualifier = qualifier.Draw(t, "qualifier")
			}
			if (op.Kind == tuplestore.Create || op.Kind == tuplestore.CreateNew) && !op.Tuple.IsPresence() {
				op.Others = tuplestore.Others(rapid.IntRange(0, 2).Draw(t, "others"))
			}
			w.Ops = append(w.Ops, op)
		}
		if rapid.IntRange(0, 4).Draw(t, "precondition") == 0 {
			w.Absent = rapid.SliceOfN(filters, 1, 2).Draw(t, "absent")
		}
		w.Now = rapid.Int64Range(0, 2).Draw(t, "now")
		for range rapid.IntRange(0, 2).Draw(t, "preconditions") {
			w.Preconditions = append(w.Preconditions, tuplestore.Precondition{
				Filter: filters.Draw(t, "precondition"), Exists: rapid.IntRange(0, 3).Draw(t, "exists") > 0,
			})
		}
		if rapid.IntRange(0, 9).Draw(t, "schema") == 0 {
			w.PutSchema = []byte("schema")
		}
		if rapid.IntRange(0, 3).Draw(t, "if schema") == 0 {
			revision := tuplestore.Revision(rapid.IntRange(0, 3).Draw(t, "schema revision"))
			w.IfSchema = &revision
		}
		return w
	})
)

func TestEffectsEqualNaiveApplication(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		state := factSet{}
		for _, tuple := range rapid.SliceOfN(tuples, 0, 12).Draw(t, "stored") {
			state[tuple] = qualifier.Draw(t, "qualifier")
		}
		group := rapid.SliceOfN(writes, 1, 6).Draw(t, "group")
		view := load(state, NeedsOf(group...), tuplestore.Head{Revision: 2, Epoch: "e"})

		for i, w := range group {
			head := view.Head()
			want := plainly(state, head, w)
			effect, err := view.Validate(w)
			if diff := cmp.Diff(fmt.Sprint(want.err), fmt.Sprint(err)); diff != "" {
				t.Fatalf("write %d: error (-want +got):\n%s", i, diff)
			}
			if err != nil || rapid.IntRange(0, 3).Draw(t, "Also fails") == 0 {
				continue // the next write must not see effects of this one
			}
			changes := map[tuplestore.Tuple]tuplestore.Change{}
			for _, c := range effect.Changes {
				if _, ok := changes[c.Tuple]; ok {
					t.Fatalf("write %d: %v changes twice", i, c.Tuple)
				}
				changes[c.Tuple] = c
			}
			if diff := cmp.Diff(want.changes, changes); diff != "" {
				t.Fatalf("write %d: changes (-want +got):\n%s", i, diff)
			}
			updates := map[tuplestore.Tuple]bool{}
			for tuple, c := range changes {
				if _, existed := state[tuple]; existed && !c.Deleted {
					updates[tuple] = true
				}
			}
			if diff := cmp.Diff(updates, effect.Updates, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("write %d: updates (-want +got):\n%s", i, diff)
			}
			if len(changes) > 0 || w.PutSchema != nil {
				head.Revision++
			}
			if w.PutSchema != nil {
				head.SchemaRevision = head.Revision
			}
			result := view.Accept(effect)
			if diff := cmp.Diff(tuplestore.Result{
				Revision: head.Revision, Epoch: "e", Statuses: want.statuses, Counts: want.counts, Replaced: want.replaced,
			}, result, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("write %d: result (-want +got):\n%s", i, diff)
			}
			if view.Head() != head {
				t.Fatalf("write %d: head %+v, want %+v", i, view.Head(), head)
			}
			state = want.after
		}
	})
}

// Only some of the tuples that violate a precondition are read. If the group deletes those,
// the precondition must still fail.
func TestPartlyReadPreconditionsFail(t *testing.T) {
	const many = 3 * MaxCount
	stored := factSet{}
	member := func(i int) tuplestore.Tuple {
		return tuplestore.Tuple{
			Object: tuplestore.Object{Type: "doc", ID: fmt.Sprintf("%06d", i)}, Relation: "viewer",
			Subject: tuplestore.Subject{Type: "user", ID: fmt.Sprint("u", i/(2*MaxCount))},
		}
	}
	for i := range many {
		stored[member(i)] = tuplestore.Qualifier{Condition: "c"}
	}
	group := []tuplestore.Write{
		{Ops: []tuplestore.Op{{Kind: tuplestore.Delete, Tuple: member(many - 1)}}},
		// The first 2,000 in primary-key order: more than are counted.
		{Ops: []tuplestore.Op{{Kind: tuplestore.DeleteMatching, Match: tuplestore.Filter{SubjectType: "user", SubjectID: "u0"}}}},
		{Absent: []tuplestore.Filter{{ObjectType: "doc"}}},
		{Ops: []tuplestore.Op{{Kind: tuplestore.DeleteMatching, Match: tuplestore.Filter{ObjectType: "doc", ObjectID: member(many - 2).Object.ID}}}},
		{Absent: []tuplestore.Filter{{ObjectType: "doc"}}},
		// It still exists, but no longer under the condition.
		{Ops: []tuplestore.Op{{Kind: tuplestore.Create, Tuple: member(many - 3)}}},
		{Absent: []tuplestore.Filter{{ObjectType: "doc", Condition: "c"}}},
	}
	view := load(stored, NeedsOf(group...), tuplestore.Head{})
	for i, want := range []int{0, 0, many - 2*MaxCount - 1, 0, many - 2*MaxCount - 2, 0, many - 2*MaxCount - 3} {
		effect, err := view.Validate(group[i])
		if want == 0 {
			if err != nil {
				t.Fatalf("write %d: %v", i, err)
			}
			view.Accept(effect)
			continue
		}
		var conflict *tuplestore.ConflictError
		if !errors.As(err, &conflict) || conflict.Op != -1 || conflict.Absent != 0 || conflict.Count != want {
			t.Errorf("write %d: %#v, want %d tuples found", i, err, want)
		}
	}
}

func TestNetEffect(t *testing.T) {
	alice := tuplestore.Tuple{
		Object: tuplestore.Object{Type: "doc", ID: "1"}, Relation: "viewer",
		Subject: tuplestore.Subject{Type: "user", ID: "alice"},
	}
	bob := alice
	bob.Subject.ID = "bob"
	create := func(t tuplestore.Tuple) tuplestore.Op { return tuplestore.Op{Tuple: t} }
	until := func(t tuplestore.Tuple, at int64) tuplestore.Op {
		return tuplestore.Op{Tuple: t, Qualifier: tuplestore.Qualifier{ExpiresAt: at}}
	}
	remove := func(t tuplestore.Tuple) tuplestore.Op { return tuplestore.Op{Kind: tuplestore.Delete, Tuple: t} }
	clear := tuplestore.Op{Kind: tuplestore.DeleteMatching, Match: tuplestore.Filter{ObjectType: "doc", ObjectID: "1"}}

	for _, c := range []struct {
		name string
		ops  []tuplestore.Op
		want []tuplestore.Change
	}{
		{"create existing", []tuplestore.Op{create(alice)}, nil},
		{"delete then create existing", []tuplestore.Op{remove(alice), create(alice)}, nil},
		{"create then delete", []tuplestore.Op{create(bob), remove(bob)}, nil},
		{"create then delete matching", []tuplestore.Op{create(bob), clear}, []tuplestore.Change{{Tuple: alice, Deleted: true}}},
		{"replace all", []tuplestore.Op{clear, create(bob)}, []tuplestore.Change{{Tuple: alice, Deleted: true}, {Tuple: bob}}},
		{"back and forth", []tuplestore.Op{create(bob), remove(bob), create(bob)}, []tuplestore.Change{{Tuple: bob}}},
		{"another qualifier", []tuplestore.Op{until(alice, 1)}, []tuplestore.Change{{Tuple: alice, Qualifier: until(alice, 1).Qualifier}}},
		{"another qualifier and back", []tuplestore.Op{until(alice, 1), create(alice)}, nil},
		{"other qualifiers twice", []tuplestore.Op{until(alice, 1), until(alice, 2)}, []tuplestore.Change{{Tuple: alice, Qualifier: until(alice, 2).Qualifier}}},
		{"delete, then create with another qualifier", []tuplestore.Op{remove(alice), until(alice, 1)}, []tuplestore.Change{{Tuple: alice, Qualifier: until(alice, 1).Qualifier}}},
		{"another qualifier, then delete", []tuplestore.Op{until(alice, 1), remove(alice)}, []tuplestore.Change{{Tuple: alice, Deleted: true}}},
		{"create with a qualifier then delete", []tuplestore.Op{until(bob, 1), remove(bob)}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			view := NewView(tuplestore.Head{})
			view.Add(tuplestore.Fact{Tuple: alice})
			effect, err := view.Validate(tuplestore.Write{Ops: c.ops})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, effect.Changes, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			if got, want := effect.TakesRevision(), len(c.want) > 0; got != want {
				t.Errorf("takes a revision: %v, want %v", got, want)
			}
		})
	}
}

// Writes of a group see the qualifiers that the writes before them left.
func TestQualifiersWithinAGroup(t *testing.T) {
	alice := tuplestore.Tuple{
		Object: tuplestore.Object{Type: "doc", ID: "1"}, Relation: "viewer",
		Subject: tuplestore.Subject{Type: "user", ID: "alice"},
	}
	create := func(condition string) tuplestore.Op {
		return tuplestore.Op{Tuple: alice, Qualifier: tuplestore.Qualifier{Condition: condition}}
	}
	remove := tuplestore.Op{Kind: tuplestore.Delete, Tuple: alice}
	clear := func(condition string) tuplestore.Op {
		return tuplestore.Op{Kind: tuplestore.DeleteMatching, Match: tuplestore.Filter{ObjectType: "doc", Condition: condition}}
	}
	view := NewView(tuplestore.Head{})
	view.Add(tuplestore.Fact{Tuple: alice, Qualifier: tuplestore.Qualifier{Condition: "a"}})
	for i, c := range []struct {
		ops     []tuplestore.Op
		counts  []int
		changes []tuplestore.Change
	}{
		{[]tuplestore.Op{clear("b"), create("a")}, []int{0, 0}, nil},
		{[]tuplestore.Op{create("b"), clear("a"), clear("b"), clear("")}, []int{1, 0, 1, 0}, []tuplestore.Change{{Tuple: alice, Deleted: true}}},
		{[]tuplestore.Op{create(""), remove}, []int{1, 1}, nil},
		{[]tuplestore.Op{create("a"), clear("")}, []int{1, 1}, nil},
		{[]tuplestore.Op{create("")}, []int{1}, []tuplestore.Change{{Tuple: alice}}},
		{[]tuplestore.Op{create("b"), clear(""), create("")}, []int{1, 1, 1}, nil},
		{[]tuplestore.Op{create("c")}, []int{1}, []tuplestore.Change{{Tuple: alice, Qualifier: tuplestore.Qualifier{Condition: "c"}}}},
		{[]tuplestore.Op{remove}, []int{1}, []tuplestore.Change{{Tuple: alice, Deleted: true}}},
		{[]tuplestore.Op{create(""), create("c"), remove}, []int{1, 1, 1}, nil},
	} {
		effect, err := view.Validate(tuplestore.Write{Ops: c.ops})
		if err != nil {
			t.Fatalf("write %d: %v", i, err)
		}
		if diff := cmp.Diff(c.changes, effect.Changes, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("write %d: changes (-want +got):\n%s", i, diff)
		}
		if diff := cmp.Diff(c.counts, view.Accept(effect).Counts); diff != "" {
			t.Errorf("write %d: counts (-want +got):\n%s", i, diff)
		}
	}
}

func TestResource(t *testing.T) {
	tuple := tuplestore.Presence(tuplestore.Object{Type: "doc", ID: "1"})
	for _, w := range []tuplestore.Write{
		{Ops: []tuplestore.Op{{Tuple: tuple}}},
		{Ops: []tuplestore.Op{{Kind: tuplestore.DeleteMatching, Match: tuplestore.Filter{ObjectType: "doc", ObjectID: "1"}}}},
	} {
		if got := Resource(w); got != "doc:1" {
			t.Errorf("%+v waits as %q", w, got)
		}
	}
	if a, b := Resource(tuplestore.Write{PutSchema: []byte{}}), Resource(tuplestore.Write{}); a != b {
		t.Errorf("writes about no object wait as %q and %q", a, b)
	}
}

// Only equal writes have equal fingerprints.
func TestFingerprintsOfEqualWritesAreEqual(t *testing.T) {
	var zero tuplestore.Revision
	base := func() tuplestore.Write {
		return tuplestore.Write{Ops: []tuplestore.Op{{Tuple: tuplestore.Presence(tuplestore.Object{Type: "ab", ID: "c"})}}}
	}
	change := func(f func(*tuplestore.Write)) tuplestore.Write {
		w := base()
		f(&w)
		return w
	}
	different := []tuplestore.Write{
		base(),
		change(func(w *tuplestore.Write) { w.Actor = "a" }),
		change(func(w *tuplestore.Write) { w.IfSchema = &zero }),
		change(func(w *tuplestore.Write) { w.PutSchema = []byte{} }),
		change(func(w *tuplestore.Write) { w.PutSchema = []byte("s") }),
		change(func(w *tuplestore.Write) { w.Absent = []tuplestore.Filter{{}} }),
		change(func(w *tuplestore.Write) {
			w.Absent = []tuplestore.Filter{{SubjectsOutside: []tuplestore.SubjectShape{}}}
		}),
		change(func(w *tuplestore.Write) { w.Absent = []tuplestore.Filter{{Presence: tuplestore.OnlyPresence}} }),
		change(func(w *tuplestore.Write) { w.Absent = []tuplestore.Filter{{Condition: "c"}} }),
		change(func(w *tuplestore.Write) { w.Ops[0].Qualifier.ExpiresAt = 1 }),
		change(func(w *tuplestore.Write) { w.Ops[0].Qualifier.Condition = "c" }),
		change(func(w *tuplestore.Write) { w.Ops[0].Qualifier.Context = "c" }),
		change(func(w *tuplestore.Write) { w.Ops[0].Kind = tuplestore.Delete }),
		change(func(w *tuplestore.Write) { w.Ops[0].Kind = tuplestore.DeleteMatching }),
		change(func(w *tuplestore.Write) { w.Ops[0].Tuple.Object = tuplestore.Object{Type: "a", ID: "bc"} }),
		change(func(w *tuplestore.Write) { w.Ops = append(w.Ops, w.Ops[0]) }),
		change(func(w *tuplestore.Write) { w.Ops = nil }),
		change(func(w *tuplestore.Write) { w.Preconditions = []tuplestore.Precondition{{}} }),
		change(func(w *tuplestore.Write) { w.Preconditions = []tuplestore.Precondition{{Exists: true}} }),
		change(func(w *tuplestore.Write) { w.Preconditions = make([]tuplestore.Precondition, 2) }),
		change(func(w *tuplestore.Write) { w.Request = "r" }),
		change(func(w *tuplestore.Write) { w.Request = "s" }),
	}
	seen := map[string]int{}
	for i, w := range different {
		sum := string(Fingerprint(w))
		if j, ok := seen[sum]; ok {
			t.Errorf("writes %d and %d have one fingerprint", j, i)
		}
		seen[sum] = i
	}
	again := change(func(w *tuplestore.Write) { w.CommitID, w.Now = "other", 1 })
	if string(Fingerprint(again)) != string(Fingerprint(base())) {
		t.Error("the commit ID or the instant changes the fingerprint")
	}
	requested := change(func(w *tuplestore.Write) { w.Request = "r" })
	other := change(func(w *tuplestore.Write) {
		w.Request, w.Ops, w.IfSchema, w.Absent, w.PutSchema = "r", nil, &zero, []tuplestore.Filter{{}}, []byte("s")
	})
	if string(Fingerprint(requested)) != string(Fingerprint(other)) {
		t.Error("what depends on stored data changes the fingerprint of a request")
	}
}
