package schema

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func rename(t *testing.T, types []Type, renames ...Rename) (*Renaming, error) {
	t.Helper()
	c, err := Compile(types)
	if err != nil {
		t.Fatal(err)
	}
	n, err := c.Rename(renames)
	if err == nil {
		if _, err := Compile(n.Types); err != nil {
			t.Errorf("the renamed types are not valid: %v", err)
		}
	}
	return n, err
}

func stored(name string, r Relation) Relation {
	r.Stored = name
	return r
}

// Renames change every reference, and keep the meaning of actions.
func TestRename(t *testing.T) {
	types := []Type{
		{Name: "folder", Relations: []Relation{relation("parent").of("folder"), relation("viewer").of("user", "folder#viewer", "folder:*", "doc#viewer")}},
		{
			Name: "doc", Actions: map[string]string{"read": "viewer"},
			Relations: []Relation{
				relation("parent").of("folder"), relation("viewer"), relation("barred"),
				relation("editor", except(computed("viewer"), arrowTo("parent", "viewer"))),
			},
		},
	}
	n, err := rename(t, types,
		Rename{From: "folder", To: "area"}, Rename{Type: "folder", From: "viewer", To: "reader"},
		Rename{Type: "doc", From: "viewer", To: "seer"}, Rename{Type: "doc", From: "parent", To: "container"})
	if err != nil {
		t.Fatal(err)
	}
	want := []Type{
		{
			Name: "area", Stored: "folder", Actions: map[string]string{"view": "reader", "viewer": "reader"},
			Relations: []Relation{relation("parent").of("area"), stored("viewer", relation("reader").of("user", "area#reader", "area:*", "doc#seer"))},
		},
		{
			Name: "doc", Actions: map[string]string{"read": "seer", "view": "seer", "viewer": "seer", "parent": "container"},
			Relations: []Relation{
				stored("parent", relation("container").of("area")), stored("viewer", relation("seer")), relation("barred"),
				relation("editor", except(computed("seer"), arrowTo("container", "reader"))),
			},
		},
	}
	if diff := cmp.Diff(want, n.Types); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	back := n.Reverse()
	for from, to := range map[RelationName]RelationName{
		{Type: "folder", Relation: "viewer"}: {Type: "area", Relation: "reader"}, {Type: "doc", Relation: "barred"}: {Type: "doc", Relation: "barred"},
	} {
		if got := (RelationName{Type: n.Type(from.Type), Relation: n.Relation(from.Type, from.Relation)}); got != to {
			t.Errorf("%v becomes %v", from, got)
		}
		if got := (RelationName{Type: back.Type(to.Type), Relation: back.Relation(to.Type, to.Relation)}); got != from {
			t.Errorf("%v was %v", to, got)
		}
	}
}

// An arrow follows the relations of all types that it leads to.
func TestRenameArrows(t *testing.T) {
	types := func(mode Mode, links ...string) []Type {
		arrow := arrowTo("parent", "reader")
		arrow.Mode = mode
		return []Type{
			{Name: "left", Relations: []Relation{relation("reader"), relation("other")}},
			{Name: "right", Relations: []Relation{relation("reader")}},
			{Name: "none", Relations: []Relation{relation("other")}},
			{Name: "doc", Relations: []Relation{relation("parent").of(links...), relation("reader", arrow)}},
		}
	}
	left := Rename{Type: "left", From: "reader", To: "viewer"}
	right := Rename{Type: "right", From: "reader", To: "viewer"}
	both := union(arrowTo("parent", "reader"), arrowTo("parent", "viewer"))
	for name, tc := range map[string]struct {
		types   []Type
		renames []Rename
		want    Rewrite // the zero value: ambiguous
	}{
		"the only type":            {types(All, "left"), []Rename{left}, allTo("parent", "viewer")},
		"another type":             {types("", "right"), []Rename{left}, arrowTo("parent", "reader")},
		"all types":                {types(All, "left", "right", "none"), []Rename{left, right}, allTo("parent", "viewer")},
		"one of two":               {types("", "left", "right", "none"), []Rename{left}, both},
		"one of two, all must":     {types(All, "left", "right"), []Rename{left}, Rewrite{}},
		"another relation's name":  {types("", "left", "none"), []Rename{{Type: "left", From: "reader", To: "x"}, {Type: "none", From: "other", To: "x"}}, Rewrite{}},
		"a relation gets its name": {types("", "right", "none"), []Rename{{Type: "none", From: "other", To: "reader"}}, Rewrite{}},
	} {
		n, err := rename(t, tc.types, tc.renames...)
		var wrong *RenameError
		switch {
		case tc.want.Kind == "":
			if !errors.As(err, &wrong) || wrong.Reason != "ambiguous" {
				t.Errorf("%s: %v", name, err)
			}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		default:
			if diff := cmp.Diff(tc.want, n.Types[3].Relations[1].Rewrites[0]); diff != "" {
				t.Errorf("%s: -want +got:\n%s", name, diff)
			}
		}
	}
}

func TestRenameErrors(t *testing.T) {
	types := []Type{{Name: "doc", Relations: []Relation{relation("a"), relation("b")}}, {Name: "folder"}}
	for want, renames := range map[string][]Rename{
		"from unknown_type":     {{From: "x", To: "y"}},
		"type unknown_type":     {{Type: "x", From: "a", To: "y"}},
		"from unknown_relation": {{Type: "doc", From: "x", To: "y"}},
		"from name_reserved":    {{From: "user", To: "person"}},
		"type name_reserved":    {{Type: "group", From: "member", To: "x"}},
		"to name_reserved":      {{From: "doc", To: "user"}},
		"to name_invalid":       {{Type: "doc", From: "a", To: "A"}},
		"to exists":             {{Type: "doc", From: "a", To: "a"}},
		"from duplicate":        {{Type: "doc", From: "a", To: "x"}, {Type: "doc", From: "a", To: "y"}},
		"to duplicate":          {{Type: "doc", From: "a", To: "x"}, {Type: "doc", From: "b", To: "x"}},
	} {
		_, err := rename(t, types, renames...)
		var wrong *RenameError
		if !errors.As(err, &wrong) || wrong.Field+" "+wrong.Reason != want || wrong.Index != len(renames)-1 || wrong.Message == "" {
			t.Errorf("%v: %+v, want %s", renames, err, want)
		}
	}
}

// Subjects can be of types that are not defined. A rename must not define one: it would change what
// tuples may name.
func TestRenameToTypeOfSubjects(t *testing.T) {
	types := []Type{{Name: "doc", Relations: []Relation{relation("a").of("team")}}, {Name: "folder"}}
	_, err := rename(t, types, Rename{From: "folder", To: "team"})
	var wrong *RenameError
	if !errors.As(err, &wrong) || wrong.Field != "to" || wrong.Reason != "exists" || !strings.Contains(wrong.Message, `relation "a" of type "doc" names it as a subject`) {
		t.Error(err)
	}
}

// A name that another rename gives up can be had in the same change.
func TestRenamesTakeNames(t *testing.T) {
	types := []Type{{Name: "doc", Relations: []Relation{relation("a"), relation("b").of("folder")}}, {Name: "folder"}}
	n, err := rename(t, types,
		Rename{From: "doc", To: "folder"}, Rename{From: "folder", To: "doc"},
		Rename{Type: "doc", From: "b", To: "x"}, Rename{Type: "doc", From: "a", To: "b"})
	if err != nil {
		t.Fatal(err)
	}
	want := []Type{
		{
			Name: "folder", Stored: "doc", Actions: map[string]string{"a": "b", "b": "x"},
			Relations: []Relation{stored("a", relation("b")), stored("b", relation("x").of("doc"))},
		},
		{Name: "doc", Stored: "folder", Relations: []Relation{}},
	}
	if diff := cmp.Diff(want, n.Types); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := Renamed(types, n.Types); !slices.Equal(got, []Rename{
		{From: "doc", To: "folder"}, {Type: "doc", From: "a", To: "b"}, {Type: "doc", From: "b", To: "x"}, {From: "folder", To: "doc"},
	}) {
		t.Errorf("renamed %v", got)
	}
	back, err := rename(t, n.Types,
		Rename{From: "folder", To: "doc"}, Rename{From: "doc", To: "folder"},
		Rename{Type: "folder", From: "b", To: "a"}, Rename{Type: "folder", From: "x", To: "b"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(types[0].Relations, back.Types[0].Relations); diff != "" || back.Types[0].Stored != "" || back.Types[1].Stored != "" {
		t.Errorf("back: %+v", back.Types)
	}
}
