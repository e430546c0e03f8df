package native

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"stonetown/cmd/stonetown/internal/importer"
)

const model = "types:\n- name: doc\n  relations: [{name: viewer}]\n"

func read(text string, more ...string) (*importer.Data, error) {
	files := fstest.MapFS{"m.yaml": {Data: []byte(text)}}
	for i := 0; i < len(more); i += 2 {
		files[more[i]] = &fstest.MapFile{Data: []byte(more[i+1])}
	}
	return Read(files, "m.yaml")
}

func TestRead(t *testing.T) {
	data, err := read(`types: types.yaml
relations:
- doc:a:b#c#viewer@user:x@y
- {relation: "doc:q#viewer@group:eng#member", expires_at: 2026-12-01T00:00:00Z, condition: {name: open, context: {n: 5}}}
tests:
- name: first
  at: 2026-11-22T12:00:00Z
  context: {n: 1}
  relations: [doc:q#viewer@user:zoe]
  allow:
  - user:ann view doc:q
  - {question: user:zoe view doc:q, reasons: [doc:q#viewer@user:zoe]}
  deny: ['{"type":"user","id":"c#major"} view doc:q']
  undecided: [user:u view doc:q]
  resources: [{subject: user:ann, action: view, type: doc, ids: [q]}]
  subjects: [{resource: doc:q, action: view, type: group#member, ids: [eng]}]
`, "types.yaml", strings.TrimPrefix(model, "types:\n"))
	if err != nil {
		t.Fatal(err)
	}
	if len(data.Types) != 1 || data.Types[0].Relations[0].Name != "viewer" {
		t.Errorf("types %+v", data.Types)
	}
	if op := data.Relations[0]; op.Resource.ID != "a:b#c" || op.Relation != "viewer" || op.Subject.ID != "x@y" {
		t.Errorf("relation %+v", op)
	}
	if op := data.Relations[1]; op.Subject.Relation != "member" || op.ExpiresAt.IsZero() || op.Condition != "open" || string(op.Context) != `{"n":5}` {
		t.Errorf("relation %+v", op)
	}
	if len(data.Assertions) != 6 {
		t.Fatalf("%d assertions", len(data.Assertions))
	}
	for i, a := range data.Assertions {
		if a.Name != "first" || a.At.Line < 11 || a.At.File != "m.yaml" || !a.Instant.Equal(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)) || len(a.Contextual) != 1 || a.Context["n"] == nil {
			t.Errorf("assertion %d: %+v", i, a)
		}
	}
	if c := data.Assertions[2].Check; c.Subject.ID != "c#major" || c.Want != importer.Denied {
		t.Errorf("check %+v", c)
	}
	if s := data.Assertions[5].Subjects; s.Type != "group" || s.Relation != "member" {
		t.Errorf("subjects %+v", s)
	}
}

func TestReadRefuses(t *testing.T) {
	test := func(text string) string { return model + "tests:\n- " + text + "\n" }
	for text, word := range map[string]string{
		"":                                    "m.yaml: has no types",
		"types: [":                            "m.yaml: yaml",
		"types: []":                           "no resource type",
		"types: none.yaml":                    "cannot read",
		"types: ../other.yaml":                "not within the folder",
		model + "relation: []":                "relation not found",
		model + "---\n{}":                     "second YAML document",
		model + "relations: [doc:q]":          "m.yaml:4: \"doc:q\" is not a relation",
		model + "relations: [{relations: a}]": "relations not found",
		model + "relations: [{relation: doc:q#viewer@user:a, expires_at: soon}]":                  "cannot",
		"types: [{name: doc, relation: []}]":                                                      "not a member",
		"types: [{name: doc, relations: [{name: r, rewrites: [{kind: computed, relation: x}]}]}]": `resource type "doc"`,
		test("{allows: []}"):                                                       "allows not found",
		test("{allow: [user:a view]}"):                                             "m.yaml:5: \"user:a view\" is not a question",
		test("{allow: [a view doc:q]}"):                                            "not a subject",
		test("{allow: [user:a view q]}"):                                           "not a resource",
		test("{deny: [{question: user:a view doc:q, reasons: [x]}]}"):              "only allowed questions",
		test("{allow: [{questions: x}]}"):                                          "questions not found",
		test("{at: noon}"):                                                         "cannot",
		test("{resources: [{subject: a}]}"):                                        "not a subject",
		test("{resources: [{subjects: a}]}"):                                       "subjects not found",
		test("{subjects: [{resource: a}]}"):                                        "not a resource",
		test("{relations: [" + strings.Repeat("doc:q#viewer@user:a,", 101) + "]}"): "at most 100",
	} {
		if _, err := read(text); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%q: %v, want a word about %q", text, err, word)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(model + "relations: [doc:q#viewer@user:a]\ntests: [{allow: [user:a view doc:q], at: 2026-01-01T00:00:00Z, context: {a: [1]}}]")
	f.Add("types: m.yaml")
	f.Fuzz(func(t *testing.T, text string) {
		data, err := read(text)
		if (data == nil) == (err == nil) {
			t.Fatalf("data %v, error %v", data, err)
		}
	})
}
