package playground

import (
	"encoding/json"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"stonetown"
	"stonetown/cmd/stonetown/internal/importer"
	"stonetown/cmd/stonetown/internal/importer/engines"
	"stonetown/engine/assertions"
	"stonetown/internal/proofgraph"
)

const model = `types:
- name: doc
  conditions: [{name: office, expression: "network == 'office'", parameters: {network: string}}]
  relations: [{name: owner, subjects: [user]}, {name: viewer, subjects: [user], rewrites: [{kind: this}, {kind: computed, relation: owner}]}]
relations:
- doc:q#owner@user:ann
- {relation: "doc:q#viewer@user:cid", condition: {name: office}}
tests:
- name: owners
  allow: [user:ann view doc:q]
  deny:
  - user:eve view doc:q
  - user:ann own doc:q
`

// The playground answers the assertions of all examples as the command stonetown test does: with
// its file name given, and by its own operations for each question.
func TestAgreesWithTests(t *testing.T) {
	asked := 0
	for _, pattern := range []string{"examples/*.yaml", "examples/*/*.yaml"} {
		names, err := fs.Glob(stonetown.Examples, pattern)
		if err != nil || len(names) == 0 {
			t.Fatal(names, err)
		}
		for _, name := range names {
			t.Run(name, func(t *testing.T) {
				data, err := engines.Read(stonetown.Examples, name, "")
				if err != nil {
					t.Fatal(err)
				}
				expected, err := importer.Validate(t.Context(), data)
				if err != nil {
					t.Fatal(err)
				}
				text, err := stonetown.Examples.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				var s Session
				defer s.Close()
				run := s.Respond(t.Context(), Request{Op: Run, Text: string(text)})
				failed := slices.IndexFunc(run.Tests, func(t Test) bool { return t.Want != "" })
				if run.Error != "" || len(run.Tests) != expected.Passed || failed >= 0 || len(run.Types) != len(data.Types) || run.Relations != len(data.Relations) {
					t.Errorf("%+v, want %d tests that hold", run, expected.Passed)
				}
				for _, a := range data.Assertions {
					req, ok := requestOf(t, a, string(text))
					if !ok {
						continue
					}
					asked++
					got, want := answerOf(s.Respond(t.Context(), req)), a.Want()
					if !a.Holds(want, got) {
						t.Errorf("%s is %q, want %q", a.Question(), got, want)
					}
				}
			})
		}
	}
	if asked < 30 {
		t.Errorf("%d questions were asked", asked)
	}
}

// requestOf returns the question of an assertion as a person types it. Relations for one question
// cannot be typed.
func requestOf(t *testing.T, a importer.Assertion, text string) (Request, bool) {
	t.Helper()
	if len(a.Contextual) > 0 {
		return Request{}, false
	}
	req := Request{Text: text}
	if a.Context != nil {
		values, err := json.Marshal(a.Context)
		if err != nil {
			t.Fatal(err)
		}
		req.Context = string(values)
	}
	if !a.Instant.IsZero() {
		req.At = a.Instant.Format("2006-01-02T15:04:05.999999999Z07:00")
	}
	switch {
	case a.Check != nil:
		req.Op, req.Subject, req.Action, req.Resource = Check, a.Check.Subject.String(), a.Check.Action, a.Check.Resource.String()
	case a.Resources != nil:
		req.Op, req.Subject, req.Action, req.Type = Resources, a.Resources.Subject.String(), a.Resources.Action, a.Resources.Type
	default:
		req.Op, req.Resource, req.Action, req.Type = Subjects, a.Subjects.Resource.String(), a.Subjects.Action, a.Subjects.Type
		if a.Subjects.Relation != "" {
			req.Type += "#" + a.Subjects.Relation
		}
	}
	return req, true
}

// answerOf returns an answer in the form of [assertions.Assertion.Want].
func answerOf(a *Answer) []string {
	switch {
	case strings.Contains(a.Error, "depends on values"):
		return []string{string(assertions.Undecided)}
	case a.Error != "":
		return []string{a.Error}
	case a.Decision == nil:
		return a.IDs
	case a.Decision.Allowed:
		return []string{string(assertions.Allowed)}
	}
	return []string{string(assertions.Denied)}
}

// A check has its steps or what is missing, and a graph. A test that fails has both answers.
func TestExplains(t *testing.T) {
	var s Session
	defer s.Close()
	run := s.Respond(t.Context(), Request{Op: Run, Text: model})
	if len(run.Tests) != 3 || run.Tests[1].Want != "" || run.Tests[2].Want != "denied" || !strings.Contains(run.Tests[2].Got, "own") || run.Tests[2].Line != 13 {
		t.Errorf("%+v", run)
	}
	allowed := s.Respond(t.Context(), Request{Op: Check, Text: model, Subject: "user:ann", Action: "view", Resource: "doc:q"})
	if d := allowed.Decision; d == nil || !d.Allowed || len(d.Reasons) == 0 || !strings.Contains(string(allowed.Graph), "proof") {
		t.Errorf("%+v", allowed)
	}
	denied := s.Respond(t.Context(), Request{Op: Check, Text: model, Subject: "user:eve", Action: "view", Resource: "doc:q"})
	if d := denied.Decision; d == nil || d.Allowed || len(d.Denial.Ways) != 2 || !strings.Contains(string(denied.Graph), "missing") {
		t.Errorf("%+v", denied)
	}
	unmet := s.Respond(t.Context(), Request{Op: Check, Text: model, Subject: "user:cid", Action: "view", Resource: "doc:q", Context: `{"network": "home"}`})
	if d := unmet.Decision; d == nil || d.Allowed || !slices.ContainsFunc(d.Denial.Ways[0].Relations, func(r proofgraph.Missing) bool { return r.State == "condition_unmet" && r.Condition.Name == "office" }) {
		t.Errorf("%+v", unmet)
	}
	unknown := s.Respond(t.Context(), Request{Op: Check, Text: model, Subject: "user:eve", Action: "view", Resource: "doc:none"})
	if !unknown.Unknown || unknown.Decision.Allowed {
		t.Errorf("%+v", unknown)
	}
	// The answer is that of the document of the request, and not of the one before.
	other := strings.Replace(model, "user:ann\n", "user:eve\n", 1)
	if a := s.Respond(t.Context(), Request{Op: Check, Text: other, Subject: "user:eve", Action: "view", Resource: "doc:q"}); a.Decision == nil || !a.Decision.Allowed {
		t.Errorf("%+v", a)
	}
}

func TestUncovered(t *testing.T) {
	var s Session
	defer s.Close()
	a := s.Respond(t.Context(), Request{Op: Uncovered, Text: strings.Replace(model, "  - user:ann own doc:q\n", "", 1)})
	if a.Error != "" || !slices.Contains(a.Parts, "doc#viewer: its own relations") || slices.Contains(a.Parts, "doc#viewer: owner") {
		t.Errorf("%+v", a)
	}
}

// Files of all engines are recognised, complete or not.
func TestKindOf(t *testing.T) {
	for text, want := range map[string]engines.Engine{
		"": engines.Stonetown, model: engines.Stonetown, "types: [": engines.Stonetown, "nonsense": engines.Stonetown,
		"model: |\n  model\n    schema 1.1\n  type user": engines.OpenFGA, "model\n  schema 1.1\n\ntype user\n": engines.OpenFGA, `{"schema_version":"1.1"}`: engines.OpenFGA,
		"schema: |-\n  definition user {}": engines.SpiceDB, "definition user {}": engines.SpiceDB, "caveat c(a int) { a > 1 }": engines.SpiceDB,
	} {
		if got, _ := kindOf(text); got != want {
			t.Errorf("%q is a file of %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{"model\n  schema 1.1\n\ntype user\n\ntype doc\n  relations\n    define viewer: [user]\n", "definition user {}\n\ndefinition doc {\n  relation viewer: user\n}\n"} {
		var s Session
		if a := s.Respond(t.Context(), Request{Op: Run, Text: text}); a.Error != "" || len(a.Types) == 0 {
			t.Errorf("%q: %+v", text, a)
		}
		s.Close()
	}
}

// An error has the line of the text, or the field of the question.
func TestErrors(t *testing.T) {
	question := Request{Op: Check, Text: model, Subject: "user:ann", Action: "view", Resource: "doc:q"}
	with := func(change func(r *Request)) Request {
		r := question
		change(&r)
		return r
	}
	for name, test := range map[string]struct {
		request     Request
		word, field string
		line        int
	}{
		"syntax":           {with(func(r *Request) { r.Text = "types: [" }), "yaml", "", 0},
		"line":             {with(func(r *Request) { r.Text = model + "- {allow: [user:ann view]}\n" }), "not a question", "", 14},
		"another file":     {with(func(r *Request) { r.Text = "types: types.yaml" }), "cannot read", "", 1},
		"large":            {with(func(r *Request) { r.Text = strings.Repeat("#", MaxText+1) }), "longer than 1048576", "", 0},
		"operation":        {with(func(r *Request) { r.Op = "delete" }), "no operation", "", 0},
		"subject":          {with(func(r *Request) { r.Subject = "ann" }), "not a subject", "subject", 0},
		"resource":         {with(func(r *Request) { r.Resource = "q" }), "not a resource", "resource", 0},
		"action":           {with(func(r *Request) { r.Action = "" }), "enter an action", "action", 0},
		"undefined action": {with(func(r *Request) { r.Action = "own" }), "own", "", 0},
		"type":             {with(func(r *Request) { r.Op = Resources }), "enter a type", "type", 0},
		"context":          {with(func(r *Request) { r.Context = "[1]" }), "JSON object", "context", 0},
		"time":             {with(func(r *Request) { r.At = "noon" }), "written as", "at", 0},
		"long field":       {with(func(r *Request) { r.Subject = strings.Repeat("x", maxField+1) }), "longer than", "subject", 0},
		"missing values":   {with(func(r *Request) { r.Subject = "user:cid" }), "depends on values for network", "", 0},
	} {
		var s Session
		a := s.Respond(t.Context(), test.request)
		s.Close()
		if !strings.Contains(a.Error, test.word) || a.Field != test.field || a.Line != test.line {
			t.Errorf("%s: %+v", name, a)
		}
	}
	var s Session
	if text := string(s.JSON(t.Context(), []byte("{"))); !strings.Contains(text, "not JSON") {
		t.Error(text)
	}
}
