package schema

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Stored names survive the document, and a process that does not know them refuses it.
func TestEncodeStoredNames(t *testing.T) {
	types := []Type{{Name: "paper", Stored: "doc", Relations: []Relation{stored("viewer", relation("reader")), relation("owner")}}}
	decoded, err := Decode(Encode(types))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(types, decoded); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	types[0].Name, types[0].Stored = storeName(types[0].Name, types[0].Stored), "" // as an earlier release reads it
	var invalid *Error
	if _, err := Compile(types); !errors.As(err, &invalid) || invalid.Reason != "name_invalid" {
		t.Errorf("%v", err)
	}
}

// What is new gets a name that no stored tuple can have.
func TestKeepStored(t *testing.T) {
	was := []Type{{Name: "paper", Stored: "doc", Relations: []Relation{stored("viewer", relation("reader")), relation("owner")}}}
	replaced := KeepStored(Type{Name: "paper", Stored: "forged", Relations: []Relation{relation("viewer"), relation("reader"), stored("forged", relation("x"))}}, &was[0], was)
	want := Type{Name: "paper", Stored: "doc", Relations: []Relation{stored("viewer~2", relation("viewer")), stored("viewer", relation("reader")), relation("x")}}
	if diff := cmp.Diff(want, replaced); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	fresh := KeepStored(Type{Name: "doc", Relations: []Relation{stored("forged", relation("viewer"))}}, nil, append(was, Type{Name: "x", Stored: "doc~2"}))
	if diff := cmp.Diff(Type{Name: "doc", Stored: "doc~3", Relations: []Relation{relation("viewer")}}, fresh); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestStoredNames(t *testing.T) {
	types := []Type{
		{Name: "paper", Stored: "doc", Relations: []Relation{stored("viewer", relation("reader")), relation("owner")}},
		{Name: "doc", Stored: "doc~2", Relations: []Relation{relation("viewer")}},
		{Name: "folder", Stored: "area", Relations: []Relation{relation("viewer"), relation("reader")}},
	}
	c, err := Compile(types)
	if err != nil {
		t.Fatal(err)
	}
	s := c.StoredNames()
	for _, name := range []string{"paper", "doc", "folder", "user", "unknown"} {
		if back := s.Back.Type(s.Of.Type(name)); back != name {
			t.Errorf("%s: stored as %s, which is %s", name, s.Of.Type(name), back)
		}
		for _, relation := range []string{"reader", "viewer", "owner", "member"} {
			r := s.Of.Relation(name, relation)
			if r == "viewer~" {
				continue // nothing has it
			}
			if back := s.Back.Relation(s.Of.Type(name), r); back != relation {
				t.Errorf("%s#%s: stored as %s, which is %s", name, relation, r, back)
			}
		}
	}
	for _, names := range [][2]string{
		{s.Of.Type("doc"), "doc~2"},
		{s.Of.Type("paper"), "doc"},
		{s.Of.Type("area"), "area~"},
		{s.Back.Type("paper"), "paper~"},
		{s.Of.Relation("paper", "reader"), "viewer"},
		{s.Of.Relation("paper", "viewer"), "viewer~"},
		{s.Of.Relation("doc", "viewer"), "viewer"},
	} {
		if names[0] != names[1] {
			t.Errorf("%s, want %s", names[0], names[1])
		}
	}
	if !s.Of.ChangesRelation("viewer") || !s.Of.ChangesRelation("reader") || s.Of.ChangesRelation("owner") {
		t.Error("relations with two names")
	}
	if c, _ := Compile([]Type{{Name: "doc"}}); c.StoredNames() != nil {
		t.Error("names without renames")
	}
}
