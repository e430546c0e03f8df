package view_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"stonetown/engine/enginetest"
	"stonetown/engine/internal/graph"
	"stonetown/engine/internal/view"
	"stonetown/engine/internal/work"
	"stonetown/tuplestore"
)

const types = `
doc
  viewer [user, user:*, group#member]
  owner [user]
  team [group#member]
  link [doc]
  when near(distance int, limit int): distance < limit`

func newView(t *testing.T, relations ...string) enginetest.View {
	t.Helper()
	v, err := enginetest.NewView(types, relations, work.Limits{Most: 100_000}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestDecide(t *testing.T) {
	now := time.UnixMicro(1_000_000)
	for _, test := range []struct {
		qualifier *tuplestore.Qualifier
		values    map[string]any
		want      view.Outcome
	}{
		{nil, nil, view.Met},
		{&tuplestore.Qualifier{ExpiresAt: 1_000_000}, nil, view.Unmet},
		{&tuplestore.Qualifier{ExpiresAt: 1_000_001}, nil, view.Met},
		{&tuplestore.Qualifier{Condition: "near", Context: `{"limit":5}`}, map[string]any{"distance": 4.0}, view.Met},
		{&tuplestore.Qualifier{Condition: "near", Context: `{"limit":5}`}, map[string]any{"distance": 5.0}, view.Unmet},
		{&tuplestore.Qualifier{Condition: "near", Context: `{"limit":5}`}, nil, view.Undecided},
		{&tuplestore.Qualifier{Condition: "near", ExpiresAt: 1}, nil, view.Unmet},
		{&tuplestore.Qualifier{Condition: "near"}, map[string]any{"distance": "?", "limit": 1.0}, view.Undecided},
		{&tuplestore.Qualifier{Condition: "undefined"}, nil, view.Undecided},
	} {
		v := newView(t, "doc:1#viewer@user:ann")
		v.Start(context.Background(), work.Limits{Most: 100_000}, func() time.Time { return now }, test.values)
		doc := v.Find(tuplestore.Object{Type: "doc", ID: "1"})
		if got := v.Decide(doc, test.qualifier); got != test.want || v.Undecided != (got == view.Undecided) {
			t.Errorf("%+v with %v: %v, undecided %v, want %v", test.qualifier, test.values, got, v.Undecided, test.want)
		}
	}
}

// All of a request has the same instant.
func TestViewReadsTheClockOnce(t *testing.T) {
	v := newView(t, "doc:1#viewer@user:ann")
	readings := 0
	clock := func() time.Time {
		readings++
		return time.UnixMicro(int64(readings) * 1000)
	}
	v.Start(context.Background(), work.Limits{Most: 100_000}, clock, nil)
	doc := v.Find(tuplestore.Object{Type: "doc", ID: "1"})
	for range 3 {
		if v.Decide(doc, &tuplestore.Qualifier{ExpiresAt: 1500}) != view.Met || v.HasExpired(&tuplestore.Qualifier{ExpiresAt: 1500}) {
			t.Error("the tuple expires during the request")
		}
	}
	if readings != 1 {
		t.Errorf("%d readings of the clock", readings)
	}
}

// A condition is evaluated once for the same stored values.
func TestConditionsAreEvaluatedOnce(t *testing.T) {
	v := newView(t, "doc:1#viewer@user:ann")
	v.Start(context.Background(), work.Limits{Most: 2000}, time.Now, map[string]any{"distance": 1.0})
	doc := v.Find(tuplestore.Object{Type: "doc", ID: "1"})
	for range 500 {
		if v.Decide(doc, &tuplestore.Qualifier{Condition: "near", Context: `{"limit":5}`}) != view.Met {
			t.Fatal("not met")
		}
	}
	if err := v.Budget.Err(); err != nil {
		t.Errorf("500 tuples with the same condition and values: %v", err)
	}
}

func TestSubjectsOfUnknownObjectsAreUnknown(t *testing.T) {
	v := newView(t, "doc:1#viewer@user:ann", "doc:2#viewer@group:g#member")
	for text, want := range map[string]bool{"user:ann": false, "user:bob": true, "group:g#member": false, "group:h#member": false} {
		s, err := enginetest.ParseSubject(text)
		if err != nil {
			t.Fatal(err)
		}
		if subject := v.Subject(s); subject.IsUnknown() != want {
			t.Errorf("%s: %+v, unknown %v, want %v", text, subject, subject.IsUnknown(), want)
		}
	}
	everyone := newView(t, "doc:1#viewer@user:*")
	if s := everyone.Subject(tuplestore.Subject{Type: "user", ID: "bob"}); s.IsUnknown() || s.Plain != graph.NoObject {
		t.Errorf("with a wildcard: %+v", s)
	}
}

// What was read is not read again, except in full after only the relevant tuples.
func TestReaderReadsEachNodeOnce(t *testing.T) {
	v := newView(t)
	var lookups []tuplestore.Lookup
	r := view.NewReader(v.Graph, v.Program, func(_ context.Context, l tuplestore.Lookup) ([]tuplestore.Fact, error) {
		lookups = append(lookups, tuplestore.Lookup{Tuples: slices.Clone(l.Tuples), Usersets: slices.Clone(l.Usersets), All: slices.Clone(l.All)})
		return nil, nil
	})
	r.About(tuplestore.Subject{Type: "user", ID: "ann"})
	doc, viewer := r.WantObject(tuplestore.Object{Type: "doc", ID: "1"}), v.Graph.Relations.Known("viewer")
	subject := v.Subject(tuplestore.Subject{Type: "user", ID: "ann"})
	some := func(id graph.ObjectID, relation graph.RelationID) { r.Want(id, relation, subject) }
	for _, want := range []func(graph.ObjectID, graph.RelationID){some, some, r.WantAll, r.WantAll, some} {
		want(doc, viewer)
		if err := r.Read(context.Background(), &v.Budget); err != nil {
			t.Fatal(err)
		}
	}
	if len(lookups) != 2 {
		t.Fatalf("%d reads: %+v", len(lookups), lookups)
	}
	// The presence, the wildcard and the subject; then all tuples.
	if first := lookups[0]; len(first.Tuples) != 3 || len(first.Usersets) != 1 || len(first.All) != 0 {
		t.Errorf("first read: %+v", first)
	}
	if second := lookups[1]; len(second.Tuples) != 0 || len(second.Usersets) != 0 || len(second.All) != 1 {
		t.Errorf("second read: %+v", second)
	}
}

// Tuples that the schema does not allow are not looked for.
func TestReaderReadsOnlyWhatTheSchemaAllows(t *testing.T) {
	for relation, want := range map[string][2]int{"viewer": {2, 1}, "owner": {1, 0}, "team": {0, 1}, "link": {0, 0}, "none": {0, 0}} {
		v := newView(t)
		var lookup tuplestore.Lookup
		r := view.NewReader(v.Graph, v.Program, func(_ context.Context, l tuplestore.Lookup) ([]tuplestore.Fact, error) {
			lookup = l
			return nil, nil
		})
		r.About(tuplestore.Subject{Type: "user", ID: "ann"})
		doc := v.Graph.Intern(tuplestore.Object{Type: "doc", ID: "1"})
		r.Want(doc, v.Graph.Relations.Intern(relation), v.Subject(tuplestore.Subject{Type: "user", ID: "ann"}))
		if err := r.Read(t.Context(), &v.Budget); err != nil {
			t.Fatal(err)
		}
		if got := [2]int{len(lookup.Tuples), len(lookup.Usersets)}; got != want {
			t.Errorf("%s: %d tuples and usersets of %d nodes, want %v", relation, got[0], got[1], want)
		}
	}
}
