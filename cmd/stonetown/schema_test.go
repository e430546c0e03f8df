package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestSchemaCommand(t *testing.T) {
	dir := development(t)
	if out := want(t, dir, "schema", "list", "--output", "json"); out != "[]\n" {
		t.Errorf("no types: %q", out)
	}
	file := writeFile(t, documents)
	if out := want(t, dir, "schema", "apply", file); out != "created folder\ncreated document\n" {
		t.Errorf("apply: %q", out)
	}
	if out := want(t, dir, "schema", "apply", file); out != "unchanged folder\nunchanged document\n" {
		t.Errorf("apply again: %q", out)
	}
	names := strings.Fields(want(t, dir, "schema", "list"))
	if slices.Sort(names); !slices.Equal(names, []string{"document", "folder"}) {
		t.Errorf("list: %q", names)
	}

	// apply reads the output of get and list, without a change.
	for _, printed := range []string{
		want(t, dir, "schema", "get", "document"), want(t, dir, "schema", "get", "document", "-o", "json"),
		want(t, dir, "schema", "list", "-o", "json"),
	} {
		out := want(t, dir, "schema", "apply", writeFile(t, printed))
		if strings.Contains(out, "created") || strings.Contains(out, "updated") || !strings.Contains(out, "unchanged document\n") {
			t.Errorf("applying\n%s\nsays %q", printed, out)
		}
	}

	one := `{"name":"folder","relations":[{"name":"owner"},{"name":"viewer"},{"name":"editor"}]}`
	var changes []map[string]string
	out := want(t, dir, "schema", "apply", writeFile(t, one), writeFile(t, "- {name: note}\n---\nname: tag\n"), "-o", "json")
	if err := json.Unmarshal([]byte(out), &changes); err != nil {
		t.Fatal(err)
	}
	if len(changes) != 3 || changes[0]["change"] != "updated" || changes[1]["change"] != "created" || changes[2]["name"] != "tag" {
		t.Errorf("apply: %v", changes)
	}

	if out := want(t, dir, "schema", "delete", "tag"); out != "deleted tag\n" {
		t.Errorf("delete: %q", out)
	}
	if out := want(t, dir, "schema", "delete", "note", "-o", "json"); !strings.Contains(out, `"deleted"`) {
		t.Errorf("delete: %q", out)
	}
	refused(t, dir, 1, "resource_type_not_found", "schema", "get", "tag")
	refused(t, dir, 1, "resource_type_not_found", "schema", "delete", "tag")
	want(t, dir, "relations", "add", "folder:f", "viewer", "user:ann")
	refused(t, dir, 1, "resource_type_in_use", "schema", "delete", "folder")
}

// The order of types in a file does not matter.
func TestSchemaApplyOrder(t *testing.T) {
	dir := development(t)
	want(t, dir, "schema", "apply", writeFile(t, "name: folder\nrelations: [{name: owner}]\n"))
	out := want(t, dir, "schema", "apply", writeFile(t, `
- name: document
  relations:
  - {name: parent, subjects: [folder]}
  - {name: viewer, rewrites: [{kind: tuple_to_userset, tupleset: parent, computed: reader}]}
- name: folder
  relations: [{name: owner}, {name: reader}]
`))
	if out != "created document\nupdated folder\n" {
		t.Errorf("%q", out)
	}
}

func TestSchemaApplyFails(t *testing.T) {
	dir := development(t)
	for text, word := range map[string]string{
		"":                         "no resource type",
		"{}":                       "has no name",
		"[]":                       "no resource type",
		"types: []":                "no resource type",
		`{"name":`:                 "yaml",
		"name: [":                  "yaml",
		"name: 1":                  "wrong type",
		`{"name":"a","name":"b"}`:  "duplicate",
		"just text":                "wrong type",
		"{name: a, relation: []}":  "/relation is not a member",
		"{name: a, Relations: []}": "/Relations is not a member",
		"{types: [{name: a, relations: [{name: r, subject: [user]}]}]}": "/relations/0/subject is not a member",
		"{types: [], more: 1}":   "/more is not a member",
		"{name: a, name: b}":     "already defined",
		"{name: a, 1: b}":        "a key that is not text",
		"[{name: a}, {name: a}]": "a second time",
		"{name: user}":           "reserved",
		"{name: a, relations: [{name: r, rewrites: [{kind: computed, relation: none}]}]}": "rewrite_invalid",
	} {
		refused(t, dir, 1, word, "schema", "apply", writeFile(t, text))
	}
	refused(t, dir, 1, "no such file", "schema", "apply", "/nowhere/at/all")
	refused(t, dir, 1, "at least one file", "schema", "apply")
	refused(t, dir, 1, "TYPE#FROM=TO", "schema", "apply", "--rename", "#a=b")
	refused(t, dir, 1, "TYPE#FROM=TO", "schema", "apply", "--rename", "a")
	if out := want(t, dir, "schema", "list"); out != "" {
		t.Errorf("there are types now: %q", out)
	}

	// A change is made whole or not at all.
	refused(t, dir, 1, `resource type "bad"`, "schema", "apply", writeFile(t, "[{name: good}, {name: bad, relations: [{name: r, rewrites: [{kind: computed, relation: none}]}]}]"))
	if out := want(t, dir, "schema", "list"); out != "" {
		t.Errorf("there are types now: %q", out)
	}
}

func TestSchemaPlan(t *testing.T) {
	dir := development(t)
	want(t, dir, "schema", "apply", writeFile(t, documents))
	want(t, dir, "relations", "add", "document:q3", "viewer", "user:ann")
	changed := writeFile(t, "name: document\nrelations: [{name: owner}, {name: viewer, rewrites: [{kind: computed, relation: owner}]}]\n")
	r := on(t, dir, "schema", "plan", changed, "--question", "user:ann view document:q3")
	for _, line := range []string{
		"updated document\n", "illegal document#viewer: 1 stored, such as document:q3#viewer@user:ann\n",
		"answer user:ann view document:q3: allowed, then denied\n", "affected document: relations ", "revision ",
	} {
		if !strings.Contains(r.out, line) {
			t.Errorf("%q is missing in %q", line, r.out)
		}
	}
	if r.code != 1 {
		t.Errorf("exit code %d for a change that cannot be made", r.code)
	}
	want(t, dir, "relations", "add", "document:q3", "viewer", "user:bob")
	single := writeFile(t, strings.Replace(documents, "{name: viewer, rewrites: [{kind: this}, {kind: tuple", "{name: viewer, cardinality: one, deprecated: use owner, rewrites: [{kind: this}, {kind: tuple", 1))
	r = on(t, dir, "schema", "plan", single)
	if line := "illegal document#viewer with several subjects: 2 stored, such as document:q3#viewer@user:ann\n"; r.code != 1 || !strings.Contains(r.out, line) {
		t.Errorf("%q is missing in %q", line, r.out)
	}
	want(t, dir, "relations", "remove", "document:q3", "viewer", "user:bob")
	want(t, dir, "schema", "apply", single)
	refused(t, dir, 1, "relation_single_valued", "relations", "add", "document:q3", "viewer", "user:bob")
	if r := on(t, dir, "check", "user:ann", "view", "document:q3"); r.code != 0 || strings.Count(r.errs, "warning: document#viewer is deprecated: use owner\n") != 1 {
		t.Errorf("check: %+v", r)
	}
	r = on(t, dir, "schema", "get", "--format", "openfga")
	for _, line := range []string{"cannot be said: document#viewer takes one subject\n", "cannot be said: document#viewer is deprecated: use owner\n"} {
		if r.code != 0 || !strings.Contains(r.errs, line) {
			t.Errorf("%q is missing in %q", line, r.errs)
		}
	}
	if out := want(t, dir, "schema", "apply", writeFile(t, want(t, dir, "schema", "get"))); !strings.HasPrefix(out, "unchanged ") {
		t.Errorf("types that were printed: %q", out)
	}
	out := want(t, dir, "schema", "plan", writeFile(t, "{name: note}"), "-o", "json")
	var plan struct {
		Revision string
		Changes  []struct{ Change string }
	}
	if err := json.Unmarshal([]byte(out), &plan); err != nil || len(plan.Changes) != 1 || plan.Changes[0].Change != "created" {
		t.Fatalf("%v: %s", err, out)
	}
	want(t, dir, "schema", "apply", writeFile(t, "{name: note}"), "--expected-revision", plan.Revision)
	refused(t, dir, 1, "resource_types_changed", "schema", "apply", writeFile(t, "{name: tag}"), "--expected-revision", plan.Revision)
	if out := want(t, dir, "schema", "apply", writeFile(t, "{name: tag}"), "--delete", "note"); out != "created tag\ndeleted note\n" {
		t.Errorf("apply: %q", out)
	}
	refused(t, dir, 1, "SUBJECT ACTION RESOURCE", "schema", "plan", changed, "--question", "user:ann view")
}

func TestSchemaRename(t *testing.T) {
	dir := development(t)
	want(t, dir, "schema", "apply", writeFile(t, documents))
	want(t, dir, "relations", "add", "document:q3", "viewer", "user:ann")
	args := []string{"--rename", "document=paper", "--rename", "document#viewer=reader"}
	plan := want(t, dir, append([]string{"schema", "plan", "--question", "user:ann view document:q3"}, args...)...)
	for _, line := range []string{"rename document=paper: 2 stored\n", "rename document#viewer=reader: 1 stored\n", "updated paper\n", "view document:q3: allowed, then allowed\n"} {
		if !strings.Contains(plan, line) {
			t.Errorf("%q is missing in %q", line, plan)
		}
	}
	if out := want(t, dir, append([]string{"schema", "apply"}, args...)...); out != "renamed document=paper\nrenamed document#viewer=reader\nupdated paper\n" {
		t.Errorf("apply: %q", out)
	}
	want(t, dir, "check", "user:ann", "view", "paper:q3")
	refused(t, dir, 1, "resource_type_not_found", append([]string{"schema", "apply"}, args...)...)
}

func TestSchemaLanguages(t *testing.T) {
	dir := development(t)
	write := func(name, text string) string {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	const fga = "model\n  schema 1.1\n\ntype user\n\ntype folder\n  relations\n    define owner: [user]\n    define viewer: [user] or owner\n"
	model := write("model.fga", fga)
	if out := want(t, dir, "schema", "apply", model); out != "created folder\n" {
		t.Errorf("apply: %q", out)
	}
	if out := want(t, dir, "schema", "get", "--format", "openfga"); out != fga {
		t.Errorf("get: %q", out)
	}
	if out := want(t, dir, "schema", "diff", model, "--format", "openfga"); out != "" {
		t.Errorf("diff: %q", out)
	}
	// SpiceDB has no relation that is derived and takes relations of its own.
	if r := on(t, dir, "schema", "get", "--format", "spicedb"); r.code != 0 || !strings.Contains(r.out, "permission viewer = viewer_direct + owner") || !strings.Contains(r.errs, "cannot be said: folder#viewer") {
		t.Errorf("get: %+v", r)
	}
	zed := write("model.zed", "definition user {}\ndefinition folder {\n\trelation owner: user\n\tpermission viewer = owner\n}\n")
	if r := on(t, dir, "schema", "diff", zed, "--format", "spicedb"); r.code != 1 || !strings.Contains(r.out, "\n+\tpermission viewer = owner\n") {
		t.Errorf("diff: %+v", r)
	}
	if r := on(t, dir, "schema", "diff", zed); r.code != 1 || !strings.Contains(r.out, "--- server\n+++ files\n") {
		t.Errorf("diff: %+v", r)
	}
	want(t, dir, "schema", "apply", zed)
	if out := want(t, dir, "schema", "diff", zed); out != "" {
		t.Errorf("diff: %q", out)
	}
	// The YAML of all types is read as it was printed.
	all := writeFile(t, want(t, dir, "schema", "get"))
	if out := want(t, dir, "schema", "apply", all); out != "unchanged folder\n" {
		t.Errorf("apply: %q", out)
	}
	refused(t, dir, 1, "must be yaml, openfga or spicedb", "schema", "get", "--format", "keto")
	refused(t, dir, 1, "not everything has an equivalent", "schema", "apply", write("arrow.zed", "definition user {}\ndefinition doc {\n\trelation any: user:*\n\tpermission view = any->self\n}\n"))
}
