package importer

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stonetown/engine"
	"stonetown/schema"
	"stonetown/schema/condition"
	"stonetown/tuplestore"
)

func object(typ, id string) tuplestore.Object { return tuplestore.Object{Type: typ, ID: id} }

func user(id string) tuplestore.Subject { return tuplestore.Subject{Type: "user", ID: id} }

// small is data with answers of every kind.
func small() *Data {
	return &Data{
		Types: []schema.Type{
			{Name: "folder", Relations: []schema.Relation{{Name: "viewer", Subjects: []schema.SubjectType{{Type: "user"}, {Type: "user", Wildcard: true}}}}},
			{
				Name: "document", Conditions: []condition.Definition{{Name: "office", Expression: "open", Parameters: []condition.Parameter{{Name: "open", Type: "bool"}}}},
				Relations: []schema.Relation{
					{Name: "parent", Subjects: []schema.SubjectType{{Type: "folder"}}},
					{Name: "viewer", Rewrites: []schema.Rewrite{{Kind: schema.This}, {Kind: schema.TupleToUserset, Tupleset: "parent", Computed: "viewer"}}},
				},
			},
		},
		Relations: []engine.WriteOp{
			{Resource: object("folder", "f"), Relation: "viewer", Subject: user("ann")},
			{Resource: object("folder", "open"), Relation: "viewer", Subject: user("*")},
			{Resource: object("document", "d"), Relation: "parent", Subject: tuplestore.Subject{Type: "folder", ID: "f"}},
			{Resource: object("document", "d"), Relation: "viewer", Subject: user("bob"), Condition: "office"},
		},
	}
}

func TestValidate(t *testing.T) {
	check := func(subject, action, typ, id string, want Answer) Assertion {
		return Assertion{Check: &Check{Subject: user(subject), Action: action, Resource: object(typ, id), Want: want}}
	}
	w := small()
	open := check("bob", "viewer", "document", "d", Allowed)
	open.Context = map[string]any{"open": true}
	contextual := check("cid", "viewer", "document", "e", Allowed)
	contextual.Contextual = []engine.WriteOp{{Resource: object("document", "e"), Relation: "viewer", Subject: user("cid")}}
	subjects := func(resource tuplestore.Object, partial bool, want ...string) Assertion {
		return Assertion{Subjects: &Subjects{Resource: resource, Action: "viewer", Type: "user", Want: want, Partial: partial}, Context: map[string]any{"open": true}}
	}
	resources := func(want ...string) Assertion {
		return Assertion{Resources: &Resources{Subject: user("ann"), Action: "viewer", Type: "folder", Want: want}}
	}
	w.Assertions = []Assertion{
		check("ann", "viewer", "document", "d", Allowed),
		check("cid", "viewer", "document", "d", Denied),
		check("cid", "viewer", "document", "unknown", Denied),
		check("bob", "viewer", "document", "d", Undecided),
		open, contextual,
		subjects(object("document", "d"), false, "bob", "ann"),
		subjects(object("document", "d"), true, "bob"),
		subjects(object("folder", "open"), false, "*"),
		subjects(object("folder", "unknown"), false),
		resources("open", "f"),
	}
	result, err := Validate(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&Result{Passed: len(w.Assertions)}, result); diff != "" {
		t.Error(diff)
	}

	wrong := check("ann", "viewer", "document", "d", Denied)
	wrong.At = Place{File: "f", Line: 7}
	failing := check("bob", "viewer", "document", "d", Allowed)
	failing.Context = map[string]any{"open": "yes"}
	w.Assertions = []Assertion{
		wrong, failing,
		check("ann", "nothing", "document", "d", Denied),
		subjects(object("document", "d"), true, "cid"),
		subjects(object("folder", "f"), false),
		resources("f"),
	}
	if result, err = Validate(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	want := []Difference{
		{At: Place{File: "f", Line: 7}, Question: "may user:ann viewer document:d?", Want: "denied", Got: "allowed"},
		{Question: "may user:bob viewer document:d?", Want: "allowed", Got: "not of type bool"},
		{Question: "may user:ann nothing document:d?", Want: "denied", Got: `no relation for "nothing"`},
		{Question: "which user may viewer document:d?", Want: "cid", Got: "ann, bob"},
		{Question: "which user may viewer folder:f?", Want: "none", Got: "ann"},
		{Question: "which folder may user:ann viewer?", Want: "f", Got: "f, open"},
	}
	for i := range min(len(want), len(result.Differences)) {
		want[i].Index = i
		if got := &result.Differences[i]; want[i].Got != "" && strings.Contains(got.Got, want[i].Got) {
			got.Got = want[i].Got // the messages are from the engine
		}
	}
	if diff := cmp.Diff(want, result.Differences); diff != "" || result.Passed != 0 {
		t.Errorf("%d passed, %s", result.Passed, diff)
	}
}

// A relation may subtract relations that lead back to it. An assertion that depends on a cycle
// in the tuples does not hold, with any expected answer.
func TestValidateRecursionThroughExclusion(t *testing.T) {
	w := &Data{Types: []schema.Type{{Name: "folder", Relations: []schema.Relation{
		{Name: "parent", Subjects: []schema.SubjectType{{Type: "folder"}}},
		{Name: "reader", Subjects: []schema.SubjectType{{Type: "user"}}},
		{Name: "viewer", Rewrites: []schema.Rewrite{{
			Kind: schema.Exclusion, Base: &schema.Rewrite{Kind: schema.Computed, Relation: "reader"},
			Subtract: &schema.Rewrite{Kind: schema.TupleToUserset, Tupleset: "parent", Computed: "viewer"},
		}}},
	}}}}
	relate := func(id, relation string, s tuplestore.Subject) {
		w.Relations = append(w.Relations, engine.WriteOp{Resource: object("folder", id), Relation: relation, Subject: s})
	}
	for id, parent := range map[string]string{"a": "top", "b": "a", "loop": "loop"} {
		relate(id, "reader", user("ann"))
		relate(id, "parent", tuplestore.Subject{Type: "folder", ID: parent})
	}
	for id, want := range map[string]Answer{"a": Allowed, "b": Denied, "loop": Denied} {
		w.Assertions = append(w.Assertions, Assertion{Check: &Check{Subject: user("ann"), Action: "viewer", Resource: object("folder", id), Want: want}})
	}
	result, err := Validate(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	if result.Passed != 2 || len(result.Differences) != 1 || !strings.Contains(result.Differences[0].Got, "depends on its own negation") {
		t.Errorf("got %+v, want one difference, that the answer about loop depends on its own negation", result)
	}
}

func TestValidateRefuses(t *testing.T) {
	w := small()
	w.Relations = append(w.Relations, engine.WriteOp{Resource: object("folder", "f"), Relation: "owner", Subject: user("ann")})
	if _, err := Validate(t.Context(), w); err == nil || !strings.Contains(err.Error(), "relation 5, folder:f#owner@user:ann") {
		t.Errorf("a relation that is not defined: %v", err)
	}
	w = small()
	w.Types[1].Relations[1].Rewrites[1].Tupleset = "none"
	if _, err := Validate(t.Context(), w); err == nil {
		t.Error("types that are not valid")
	}
}
