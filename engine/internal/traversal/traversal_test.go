package traversal_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"

	"stonetown/engine/enginetest"
	"stonetown/engine/internal/program"
	"stonetown/engine/internal/traversal"
	"stonetown/engine/internal/work"
	"stonetown/tuplestore"
)

const drive = `
folder
  parent [folder]
  viewer [user, user:*, group#member]: this | parent->viewer
  banned [user]
  reader: viewer - banned
  owner: self
  when open(x bool): x`

// The document's folders form a cycle.
var tuples = []string{
	"folder:a#parent@folder:b", "folder:b#parent@folder:c", "folder:c#parent@folder:a",
	"folder:c#viewer@group:g#member", "group:g#member@group:h#member", "group:h#member@user:ann",
	"folder:b#viewer@user:bob until 2001-01-01T00:00:00Z", "folder:b#viewer@user:cid when open", "folder:b#viewer@user:dan until 2999-01-01T00:00:00Z",
	"folder:public#viewer@user:*", "folder:a#banned@user:eve",
}

func newView(t *testing.T, l work.Limits, values map[string]any) enginetest.View {
	t.Helper()
	v, err := enginetest.NewView(drive, tuples, l, values)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestReachabilityDecidesUnions(t *testing.T) {
	unknown := traversal.ErrNotReachability
	for _, test := range []struct {
		question string
		values   map[string]any
		reaches  bool
		err      error
	}{
		{"user:ann viewer folder:a", nil, true, nil},
		{"user:ann viewer folder:public", nil, true, nil},
		{"user:eve viewer folder:a", map[string]any{"x": true}, false, nil},
		{"user:bob viewer folder:a", nil, false, nil},
		{"user:dan viewer folder:a", nil, true, nil},
		{"user:cid viewer folder:a", map[string]any{"x": true}, true, nil},
		{"user:cid viewer folder:a", map[string]any{"x": false}, false, nil},
		{"user:cid viewer folder:a", nil, false, unknown},
		{"user:ann reader folder:a", nil, false, unknown},
		{"folder:a owner folder:a", nil, true, nil},
		{"folder:a owner folder:b", nil, false, nil},
	} {
		v := newView(t, work.Limits{Most: 10_000}, test.values)
		object, rule, s, err := v.Question(test.question)
		if err != nil {
			t.Fatal(err)
		}
		if !traversal.Decides(v.View, s) {
			t.Fatalf("%s cannot be decided", test.question)
		}
		var r traversal.Reachability
		r.Begin(v.View, s)
		for range 2 { // the second question uses the places of the first
			if reaches, err := r.Reaches(object, rule); reaches != test.reaches || !errors.Is(err, test.err) {
				t.Errorf("%s with %v: %v, %v, want %v, %v", test.question, test.values, reaches, err, test.reaches, test.err)
			}
		}
		if v.Undecided {
			t.Errorf("%s: the view is left undecided", test.question)
		}
	}
}

// The questions of a batch do not visit places again whose outcome is known.
func TestReachabilitySharesItsPlaces(t *testing.T) {
	v := newView(t, work.Limits{Most: 40}, map[string]any{"x": false})
	object, rule, s, err := v.Question("user:eve viewer folder:a")
	if err != nil {
		t.Fatal(err)
	}
	var r traversal.Reachability
	r.Begin(v.View, s)
	for i := range 1000 {
		if reaches, err := r.Reaches(object, rule); reaches || err != nil {
			t.Fatalf("question %d: %v, %v", i, reaches, err)
		}
	}
}

func TestReachabilityEndsWithTheBudget(t *testing.T) {
	v := newView(t, work.Limits{Most: 3}, map[string]any{"x": false})
	object, rule, s, err := v.Question("user:eve viewer folder:a")
	if err != nil {
		t.Fatal(err)
	}
	var r traversal.Reachability
	r.Begin(v.View, s)
	_, err = r.Reaches(object, rule)
	if _, exceeded := errors.AsType[*work.BudgetError](err); !exceeded {
		t.Errorf("got %v, want a *BudgetError", err)
	}
}

// Subjects that a path of unions without qualifiers leads to are sure. The others have to
// be checked, those that are denied among them.
func TestForwardFindsAllSubjects(t *testing.T) {
	for relation, want := range map[string]map[string]bool{
		"viewer": {"ann": true, "bob": false, "cid": false, "dan": false},
		"reader": {"ann": false, "bob": false, "cid": false, "dan": false, "eve": false},
		"banned": {"eve": true},
	} {
		v := newView(t, work.Limits{Most: 10_000}, nil)
		object, rule, _, err := v.Question(fmt.Sprintf("user:ann %s folder:a", relation))
		if err != nil {
			t.Fatal(err)
		}
		var f traversal.Forward
		registered, err := f.Run(context.Background(), v.View, object, rule, tuplestore.Subject{Type: "user"})
		found := map[string]bool{}
		for id, sure := range f.Found {
			found[v.Key(id).ID] = sure
		}
		if !registered || err != nil || f.Everyone || !maps.Equal(found, want) {
			t.Errorf("%s of folder:a: %v, %v, everyone %v, want %v (%v)", relation, found, registered, f.Everyone, want, err)
		}
	}
	v := newView(t, work.Limits{Most: 10_000}, nil)
	object, rule, _, err := v.Question("user:ann viewer folder:public")
	if err != nil {
		t.Fatal(err)
	}
	var f traversal.Forward
	if _, err := f.Run(context.Background(), v.View, object, rule, tuplestore.Subject{Type: "user"}); err != nil || !f.Everyone || len(f.Found) != 0 {
		t.Errorf("viewer of folder:public: %v, everyone %v, %v", f.Found, f.Everyone, err)
	}
}

func TestReverseFindsAllResources(t *testing.T) {
	for _, test := range []struct {
		subject, relation string
		want              map[string]bool
	}{
		{"user:ann", "viewer", map[string]bool{"a": true, "b": true, "c": true, "public": true}},
		{"user:cid", "viewer", map[string]bool{"a": false, "b": false, "c": false, "public": true}},
		{"user:eve", "viewer", map[string]bool{"public": true}},
		{"user:ann", "reader", map[string]bool{"a": false, "b": false, "c": false, "public": false}},
		{"folder:a", "owner", map[string]bool{"a": false}},
		{"folder:c#viewer", "viewer", map[string]bool{"a": false, "b": false, "c": false}},
	} {
		v := newView(t, work.Limits{Most: 10_000}, nil)
		v.Graph.IndexBackward()
		s, err := enginetest.ParseSubject(test.subject)
		if err != nil {
			t.Fatal(err)
		}
		target := program.TypeRelation{Type: v.Graph.Types.Known("folder"), Relation: v.Graph.Relations.Known(test.relation)}
		var r traversal.Reverse
		if err := r.Run(context.Background(), v.View, v.Subject(s), target); err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		for _, set := range r.Sets {
			if set.Relation == target.Relation && v.Key(set.Object).Type == target.Type {
				found[v.Key(set.Object).ID] = set.Sure
			}
		}
		if !maps.Equal(found, test.want) {
			t.Errorf("%s in %s: %v, want %v", test.subject, test.relation, found, test.want)
		}
	}
}
