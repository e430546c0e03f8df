package importer_test

import (
	"slices"
	"testing"
	"testing/fstest"

	"stonetown/cmd/stonetown/internal/importer"
	"stonetown/cmd/stonetown/internal/importer/native"
)

const covering = `types:
- name: group_of
  relations: [{name: member, subjects: [user]}]
- name: doc
  conditions: [{name: open, expression: now, parameters: {now: bool}}]
  relations:
  - {name: parent, subjects: [doc]}
  - {name: owner, subjects: [user]}
  - {name: banned, subjects: [user]}
  - {name: signed, subjects: [user]}
  - name: viewer
    subjects: [user]
    rewrites: [{kind: this}, {kind: computed, relation: owner}, {kind: tuple_to_userset, tupleset: parent, computed: viewer}]
  - name: reader
    rewrites:
    - {kind: exclusion, base: {kind: computed, relation: viewer}, subtract: {kind: computed, relation: banned}}
  - name: partner
    rewrites:
    - {kind: intersection, children: [{kind: computed, relation: viewer}, {kind: computed, relation: signed}]}
relations:
- doc:1#viewer@user:ann
- doc:1#owner@user:olga
- doc:2#parent@doc:1
- doc:1#viewer@user:eve
- doc:1#banned@user:eve
- doc:1#signed@user:ann
- {relation: doc:1#viewer@user:temp, condition: {name: open}}
`

// uncovered returns the parts that no assertion depends on.
func uncovered(t *testing.T, tests string) []string {
	t.Helper()
	data, err := native.Read(fstest.MapFS{"m.yaml": {Data: []byte(covering + tests)}}, "m.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if result, err := importer.Validate(t.Context(), data); err != nil || len(result.Differences) > 0 {
		t.Fatalf("%v %+v", err, result)
	}
	parts, err := importer.Uncovered(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	return parts
}

// TestUncovered adds assertions, each of which covers further parts.
func TestUncovered(t *testing.T) {
	all := []string{
		"group_of#member: its own relations",
		"doc#owner: its own relations", "doc#banned: its own relations", "doc#signed: its own relations",
		"doc#viewer: its own relations", "doc#viewer: owner", "doc#viewer: viewer of parent",
		"doc#reader: viewer", "doc#reader: without banned",
		"doc#partner: and viewer", "doc#partner: and signed",
		"doc: condition open is false", "doc: condition open is true",
	}
	if got := uncovered(t, "tests: []"); !slices.Equal(got, all) {
		t.Fatalf("without assertions: %q", got)
	}
	tests := "tests:\n"
	for _, step := range []struct {
		assertion string
		covers    []string
	}{
		{"- allow: [user:olga view doc:2]", []string{"doc#owner: its own relations", "doc#viewer: owner", "doc#viewer: viewer of parent"}},
		{"- allow: [user:ann view doc:1]", []string{"doc#viewer: its own relations"}},
		{"- deny: [user:eve reader doc:1]", []string{"doc#banned: its own relations", "doc#reader: without banned"}},
		{"- allow: [user:olga reader doc:1]", []string{"doc#reader: viewer"}},
		{"- deny: [user:olga partner doc:1]", []string{"doc#partner: and signed"}},
		{"- allow: [user:ann partner doc:1]", []string{"doc#signed: its own relations"}},
		{"- {relations: [doc:1#signed@user:zed], deny: [user:zed partner doc:1]}", []string{"doc#partner: and viewer"}},
		{"- {context: {now: true}, allow: [user:temp view doc:1]}", []string{"doc: condition open is true"}},
		{"- {context: {now: false}, deny: [user:temp view doc:1]}", []string{"doc: condition open is false"}},
		{"- {relations: [group_of:g#member@user:a], allow: [user:a member group_of:g]}", []string{"group_of#member: its own relations"}},
	} {
		tests += step.assertion + "\n"
		all = slices.DeleteFunc(all, func(part string) bool { return slices.Contains(step.covers, part) })
		if got := uncovered(t, tests); !slices.Equal(got, all) {
			t.Fatalf("with %s: %q, want %q", step.assertion, got, all)
		}
	}
	if len(all) > 0 {
		t.Errorf("never covered: %q", all)
	}
}
