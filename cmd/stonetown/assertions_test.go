package main

import (
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// The assertions of the example are stored, and judge plans of its types.
func TestAssertions(t *testing.T) {
	const example = "../../examples/documents.test.yaml"
	dir := development(t)
	text, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	var parts struct{ Types yaml.Node }
	if err := yaml.Unmarshal(text, &parts); err != nil {
		t.Fatal(err)
	}
	definitions, err := yaml.Marshal(&parts.Types)
	if err != nil {
		t.Fatal(err)
	}
	types := writeFile(t, string(definitions))
	if out := want(t, dir, "assertions", "put", "documents", example); out != "stored documents: 17 assertions\n" {
		t.Errorf("put: %q", out)
	}
	if out := want(t, dir, "schema", "plan", types); !strings.Contains(out, "17 of 17 stored assertions hold\n") {
		t.Errorf("plan: %q", out)
	}
	want(t, dir, "schema", "apply", types, "--require-assertions")

	// Who is banned views, if another relation is subtracted.
	lost := writeFile(t, strings.ReplaceAll(string(definitions), "relation: banned", "relation: parent"))
	r := on(t, dir, "schema", "plan", lost)
	if r.code != 1 || !strings.Contains(r.out, "failed documents: may user:eve view document:q3? expected denied, got denied, then allowed\n") {
		t.Errorf("plan: %+v", r)
	}
	refused(t, dir, 1, "assertions_failed", "schema", "apply", lost, "--require-assertions")

	if out := want(t, dir, "assertions", "list"); out != "documents 17\n" {
		t.Errorf("list: %q", out)
	}
	if out := want(t, dir, "assertions", "get", "documents"); !strings.Contains(out, "name: access comes from folders, groups and editors\n") {
		t.Errorf("get: %q", out)
	}
	if out := want(t, dir, "assertions", "delete", "documents"); out != "deleted documents\n" {
		t.Errorf("delete: %q", out)
	}
	refused(t, dir, 1, "assertions_not_found", "assertions", "get", "documents")
	refused(t, dir, 1, "must match", "assertions", "put", "No", example)
	want(t, dir, "schema", "apply", lost, "--require-assertions")
}
