package openfga

import (
	"strings"
	"testing"

	"stonetown/engine"
)

// TestTupleFiles reads the same tuples in every form, without a model.
func TestTupleFiles(t *testing.T) {
	want := `
document:1#viewer@user:ann
document:1#viewer@user:*
document:1#viewer@team:a#member
document:2#can_edit@user:007 if in_time {"n":12345678901234567,"s":"x"}
`
	report := `renamed FILE:5: relation "can-edit" is called "can_edit"`
	for _, test := range []struct{ name, text, report string }{
		{"t.csv", `relation,object_type,object_id,user_type,user_id,user_relation,condition_name,condition_context
viewer,document,1,user,ann,,,
viewer,document,1,user,*,,,
viewer,document,1,team,a,member,,
can-edit,document,2,user,007,,in_time,"{""s"": ""x"", ""n"": 12345678901234567}"
`, report},
		{"t.json", `[
{"user": "user:ann", "relation": "viewer", "object": "document:1"},
{"user": "user:*", "relation": "viewer", "object": "document:1"},
{"user": "team:a#member", "relation": "viewer", "object": "document:1"},
{"user": "user:007", "relation": "can-edit", "object": "document:2",
  "condition": {"name": "in_time", "context": {"n": 12345678901234567, "s": "x"}}}
]`, report},
		{"response.json", `{
  "continuation_token": "",
  "tuples": [
    {"key": {"user": "user:ann", "relation": "viewer", "object": "document:1", "condition": null}, "timestamp": "2024-01-01T00:00:00Z"},
    {"key": {"user": "user:*", "relation": "viewer", "object": "document:1"}}, {"key": {"user": "team:a#member", "relation": "viewer", "object": "document:1"}},
    {"key": {"user": "user:007", "relation": "can-edit", "object": "document:2", "condition": {"name": "in_time", "context": {"n": 12345678901234567, "s": "x"}}}}
  ]
}`, strings.Replace(report, ":5", ":6", 1)},
		{"t.jsonl", `{"user": "user:ann", "relation": "viewer", "object": "document:1"}
{"user": "user:*", "relation": "viewer", "object": "document:1"}

{"user": "team:a#member", "relation": "viewer", "object": "document:1"}
{"user": "user:007", "relation": "can-edit", "object": "document:2", "condition": {"name": "in_time", "context": {"n": 12345678901234567, "s": "x"}}}
`, report},
		{"t.yaml", `- {user: user:ann, relation: viewer, object: "document:1"}
- {user: "user:*", relation: viewer, object: "document:1"}
- {user: "team:a#member", relation: viewer, object: "document:1"}
# Numbers keep their digits.
- user: user:007
  relation: can-edit
  object: document:2
  condition:
    name: in_time
    context: {n: 12345678901234567, s: x}
`, report},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, err := Read(folder("dir/"+test.name, "\ufeff"+strings.ReplaceAll(test.text, "\n", "\r\n")), "dir/"+test.name)
			if err != nil {
				t.Fatal(err)
			}
			same(t, "relations", opLines(w.Relations), want)
			same(t, "report", reportLines(w.Report), strings.ReplaceAll(test.report, "FILE", "dir/"+test.name))
			if w.Types != nil || w.Assertions != nil {
				t.Errorf("types %v, assertions %v", w.Types, w.Assertions)
			}
		})
	}
}

// TestTuplesLeftOut has one tuple for each reason.
func TestTuplesLeftOut(t *testing.T) {
	long := strings.Repeat("x", engine.MaxID+1)
	w, err := Read(folder("store.yaml", `model: |
  model
    schema 1.1
  type user
  type employee
  type group
    relations
      define member: [user]
  type document
    relations
      define parent: [document]
      define viewer: [user, group#member, user with c]
      define editor: [user with c]
      define can_view: viewer or viewer from parent
  condition c(n: int) {
    n > 1
  }
tuples:
  - {user: user:ok, relation: viewer, object: document:1}
  - {user: user:ok, relation: viewer, object: document:1, condition: {name: c}}
  - {user: ann, relation: viewer, object: document:1}
  - {user: user:ann, relation: viewer, object: document}
  - {user: user:ann, relation: viewer, object: "document:*"}
  - {user: user:ann, relation: viewer, object: "document:"}
  - {user: "user:ann#", relation: viewer, object: document:1}
  - {user: "user:*#x", relation: viewer, object: document:1}
  - {user: user:a n, relation: viewer, object: document:1}
  - {user: user:ann, relation: "vie wer", object: document:1}
  - {user: user:ann, relation: viewer, object: folder:1}
  - {user: user:ann, relation: owner, object: document:1}
  - {user: robot:1, relation: viewer, object: document:1}
  - {user: "document:1#owner", relation: viewer, object: document:1}
  - {user: employee:1, relation: viewer, object: document:1}
  - {user: "user:*", relation: viewer, object: document:1}
  - {user: user:ann, relation: can_view, object: document:1}
  - {user: group:x, relation: viewer, object: document:1}
  - {user: user:ann, relation: editor, object: document:1}
  - {user: user:ann, relation: editor, object: document:2, condition: {name: d}}
  - {user: user:ann, relation: editor, object: document:3, condition: {name: c, context: {n: x}}}
  - {user: user:ann, relation: editor, object: document:4, condition: {name: c, context: {m: 1}}}
  - {user: user:`+long+`, relation: viewer, object: document:1}
  - {user: user:ann, relation: viewer, object: document:`+long+`}
`), "store.yaml")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "relations", opLines(w.Relations), `document:1#viewer@user:ok`)
	clipped := strings.NewReplacer("user:"+strings.Repeat("x", 200-len("user:")), "user:LONG", "document:"+strings.Repeat("x", 200-len("document:")), "document:LONG")
	var problems []string
	for _, line := range reportLines(w.Report) {
		if problem, ok := strings.CutPrefix(line, "unsupported store.yaml:"); ok {
			problems = append(problems, clipped.Replace(problem))
		}
	}
	same(t, "problems", problems, `
20: document:1#viewer@user:ok is left out: it stands in store.yaml:19 already
21: document:1#viewer@ann is left out: "ann" is not of the form type:id, type:id#relation or type:*
22: document#viewer@user:ann is left out: "document" is not of the form type:id
23: document:*#viewer@user:ann is left out: "document:*" is not of the form type:id
24: document:#viewer@user:ann is left out: "document:" is not of the form type:id
25: document:1#viewer@user:ann# is left out: "user:ann#" is not of the form type:id, type:id#relation or type:*
26: document:1#viewer@user:*#x is left out: "user:*#x" is not of the form type:id, type:id#relation or type:*
27: document:1#viewer@user:a n is left out: "user:a n" is not of the form type:id, type:id#relation or type:*
28: document:1#vie wer@user:ann is left out: "vie wer" cannot be the name of a relation
29: folder:1#viewer@user:ann is left out: type folder does not exist
30: document:1#owner@user:ann is left out: type document has no relation owner
31: document:1#viewer@robot:1 is left out: type robot does not exist
32: document:1#viewer@document:1#owner is left out: type document has no relation owner
33: document:1#viewer@employee:1 is left out: the relation does not list this kind of subject
34: document:1#viewer@user:* is left out: the relation does not list this kind of subject
35: document:1#can_view@user:ann is left out: the relation does not list this kind of subject
36: document:1#viewer@group:x is left out: the relation does not list this kind of subject
37: document:1#editor@user:ann is left out: the relation allows this kind of subject only on a condition
38: document:2#editor@user:ann is left out: the relation does not allow this kind of subject on condition d
39: document:3#editor@user:ann is left out: the value for n is not of type int
40: document:4#editor@user:ann is left out: condition c has no parameter "m"
41: document:1#viewer@user:LONG is left out: an ID of more than 512 bytes
42: document:LONG#viewer@user:ann is left out: an ID of more than 512 bytes
`)
}

// TestGroupWithoutModel refuses a group as a subject, because it cannot be distinguished from
// its members here.
func TestGroupWithoutModel(t *testing.T) {
	w, err := Read(folder("t.jsonl", `{"user": "group:x", "relation": "parent", "object": "group:y"}
{"user": "group:x#member", "relation": "member", "object": "group:y"}
{"user": "user:a", "relation": "member", "object": "scope:y"}`), "t.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "relations", opLines(w.Relations), `
group:y#member@group:x#member
scope_2:y#member@user:a`)
	same(t, "report", reportLines(w.Report), `
renamed t.jsonl:3: type "scope" is called "scope_2"
unsupported t.jsonl:1: group:y#parent@group:x is left out: a group as a subject stands for its members here`)
}
