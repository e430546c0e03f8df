package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	apiclient "stonetown/client"
)

func TestRelationsCommand(t *testing.T) {
	dir := development(t)
	want(t, dir, "schema", "apply", writeFile(t, documents))

	for _, status := range []string{"created", "exists"} {
		if out := want(t, dir, "relations", "add", "document:q3", "viewer", "user:ann"); out != status+" document:q3#viewer@user:ann\n" {
			t.Errorf("add: %q, want %s", out, status)
		}
	}
	out := want(t, dir, "relations", "add", "document:q3", "viewer", "user:bob", "-o", "json",
		"--expires-at", "2099-01-01T00:00:00Z", "--condition", "nearby", "--condition-context", `{"limit":5}`)
	if !strings.Contains(out, `"status": "created"`) {
		t.Errorf("add: %s", out)
	}
	want(t, dir, "relations", "add", "document:q3", "parent", "folder:2026")

	list := want(t, dir, "relations", "list", "document:q3")
	if list != `document:q3#parent@folder:2026
document:q3#viewer@user:ann
document:q3#viewer@user:bob until 2099-01-01T00:00:00.000Z if nearby with {"limit":5}
` {
		t.Errorf("list:\n%s", list)
	}
	var tuples []apiclient.Tuple
	if err := json.Unmarshal([]byte(want(t, dir, "relations", "list", "document:q3", "--relation", "viewer", "-o", "json")), &tuples); err != nil || len(tuples) != 2 {
		t.Errorf("list as JSON: %v, %v", tuples, err)
	}

	if out := want(t, dir, "relations", "remove", "document:q3", "viewer", "user:bob"); out != "removed document:q3#viewer@user:bob\n" {
		t.Errorf("remove: %q", out)
	}
	refused(t, dir, 1, "relation_not_found", "relations", "remove", "document:q3", "viewer", "user:bob")
	want(t, dir, "relations", "remove", "document:q3", "viewer", "user:ann")
	want(t, dir, "relations", "remove", "document:q3", "parent", "folder:2026")
	if out := want(t, dir, "relations", "list", "document:q3", "-o", "json"); out != "[]\n" {
		t.Errorf("an empty list: %q", out)
	}
}

// TestRelationsOfSubject lists and deletes by subject.
func TestRelationsOfSubject(t *testing.T) {
	dir := development(t)
	want(t, dir, "schema", "apply", writeFile(t, documents))
	for _, tuple := range []string{"document:a viewer user:ann", "document:b viewer user:ann", "folder:f viewer user:ann", "document:a viewer user:bob", "document:a parent folder:f"} {
		want(t, dir, append([]string{"relations", "add"}, strings.Fields(tuple)...)...)
	}
	if out := want(t, dir, "relations", "list", "--subject", "user:ann"); out != "document:a#viewer@user:ann\ndocument:b#viewer@user:ann\nfolder:f#viewer@user:ann\n" {
		t.Errorf("list:\n%s", out)
	}
	if out := want(t, dir, "relations", "list", "--subject", "user:ann", "--resource", "document:b"); out != "document:b#viewer@user:ann\n" {
		t.Errorf("list:\n%s", out)
	}
	if out := want(t, dir, "relations", "delete", "--subject", "user:ann", "--resource-type", "document", "--relation", "viewer"); out != "deleted 2 relations\n" {
		t.Errorf("delete: %q", out)
	}
	if out := want(t, dir, "relations", "delete", "--subject", "user:ann", "-o", "json"); !strings.Contains(out, `"deleted": 1`) {
		t.Errorf("delete: %q", out)
	}
	if out := want(t, dir, "relations", "delete", "--subject", "user:ann"); out != "deleted 0 relations\n" {
		t.Errorf("delete: %q", out)
	}
	want(t, dir, "check", "user:bob", "view", "document:a")
	for flags, lines := range map[string]string{
		"--resource-type document":                     "document:a#parent@folder:f\ndocument:a#viewer@user:bob\n",
		"--resource-type document --subject-type user": "document:a#viewer@user:bob\n",
		"--resource document:a --relation parent":      "document:a#parent@folder:f\n",
		"--subject-type folder":                        "document:a#parent@folder:f\n",
		"--subject-type user --relation parent":        "",
	} {
		if out := want(t, dir, append([]string{"relations", "list"}, strings.Fields(flags)...)...); out != lines {
			t.Errorf("list %s:\n%s", flags, out)
		}
	}
	if out := want(t, dir, "relations", "delete", "--resource-type", "document", "--relation", "parent"); out != "deleted 1 relations\n" {
		t.Errorf("delete: %q", out)
	}
	for args, word := range map[string]string{
		"delete":                                                 "is required",
		"delete --relation viewer":                               "is required",
		"delete --subject-relation viewer":                       "is required",
		"delete --subject ann":                                   "not a subject",
		"delete --subject ghost:x":                               "subject_invalid",
		"list --subject-relation viewer":                         "is required",
		"list --resource-type ghost":                             "resource_type_not_found",
		"list document:a --subject u:x":                          "unknown command",
		"list document:a --resource a:b":                         "unknown command",
		"list --subject user:a --subject-type user":              "cannot be combined",
		"list --subject user:a --resource a:b --resource-type c": "cannot be combined",
	} {
		refused(t, dir, 1, word, append([]string{"relations"}, strings.Fields(args)...)...)
	}
}

// TestRelationsCommandConditions writes and removes under conditions.
func TestRelationsCommandConditions(t *testing.T) {
	dir := development(t)
	want(t, dir, "schema", "apply", writeFile(t, documents))
	run := func(text string) string {
		return want(t, dir, append([]string{"relations"}, strings.Fields(text)...)...)
	}
	refuse := func(code, text string) {
		t.Helper()
		refused(t, dir, 1, code, append([]string{"relations"}, strings.Fields(text)...)...)
	}
	if out := run("add document:q3 viewer user:ann --new --must-not-exist document:q3#viewer"); out != "created document:q3#viewer@user:ann\n" {
		t.Errorf("add: %q", out)
	}
	refuse("precondition_failed", "add document:q3 viewer user:bob --must-not-exist document:q3#viewer")
	refuse("relation_exists", "add document:q3 viewer user:ann --new")
	run("add document:q3 viewer user:bob --must-exist document:q3#viewer@user:ann --must-not-exist document@user:bob --must-not-exist @user:eve")
	refuse("precondition_failed", "remove document:q3 viewer user:bob --must-exist document:q3#viewer@user:cid")
	if out := run("remove document:q3 viewer user:bob --must-exist document:q3"); out != "removed document:q3#viewer@user:bob\n" {
		t.Errorf("remove: %q", out)
	}
	if out := run("remove document:q3 viewer user:bob --if-exists"); out != "missing document:q3#viewer@user:bob\n" {
		t.Errorf("remove: %q", out)
	}
	refuse("relation_not_found", "remove document:q3 viewer user:bob")
	refuse("validation_failed", "add document:q3 viewer user:bob --must-exist document#viewer")
	for _, filter := range []string{"#viewer", "document:", "@", ":q3", "document:q3@:ann", `{"resource":"document:q3"}`} {
		refuse("does not select relations", "add document:q3 viewer user:bob --must-exist "+filter)
	}
	run(`add document:q3 viewer user:bob --must-exist {"resource_type":"document","external_id":"q3"}`)
}

// Ids can have any character; only printable text reaches the terminal.
func TestRelationsCommandOddIDs(t *testing.T) {
	dir := development(t)
	want(t, dir, "schema", "apply", writeFile(t, documents))
	for _, id := range []string{"a/b c", "..", ".", "%2F", "a:b?c#D", "ünïcode", "\x1b[31mred\n", "<&>"} {
		want(t, dir, "relations", "add", "document:"+id, "viewer", "user:"+id)
		line := fmt.Sprintf("document:%s#viewer@user:%s\n", apiclient.Printable(id), apiclient.Printable(id))
		if out := want(t, dir, "relations", "list", "document:"+id); out != line || strings.ContainsRune(out, '\x1b') {
			t.Errorf("%q is listed as %q", id, out)
		}
		want(t, dir, "check", "user:"+id, "view", "document:"+id)
		want(t, dir, "relations", "remove", "document:"+id, "viewer", "user:"+id)
	}
	want(t, dir, "relations", "add", "document:d", "viewer", `{"type":"user","id":"c#major"}`)
	if out := want(t, dir, "relations", "list", "document:d"); out != "document:d#viewer@user:c#major\n" {
		t.Errorf("%q", out)
	}
}

func TestRelationsCommandFails(t *testing.T) {
	dir := development(t)
	want(t, dir, "schema", "apply", writeFile(t, documents))
	for args, word := range map[string]string{
		"list q3":                               "not a resource",
		"list paper:q3":                         "resource_type_not_found",
		"list document:none":                    "resource_not_found",
		"list":                                  "accepts 1 arg",
		"add document:q3 viewer":                "accepts 3 arg",
		"add document:q3 viewer ann":            "not a subject",
		"add paper:q3 viewer user:ann":          "resource_type_not_found",
		"add document:q3 reader user:ann":       "relation_undefined",
		"add document:q3 parent user:ann":       "subject_invalid",
		"add document:q3 viewer user:a#nonsuch": "subject_invalid",
		"add document:q3 viewer user:ann --expires-at tomorrow":                          "expires_at",
		"add document:q3 viewer user:ann --condition none":                               "none",
		"add document:q3 viewer user:ann --condition-context {}":                         "requires --condition",
		"add document:q3 viewer user:ann --condition nearby --condition-context x":       "--condition-context is not a JSON object",
		`add document:q3 viewer user:ann --condition nearby --condition-context {"a":1}`: `no parameter "a"`,
		"remove document:q3 viewer user:ann":                                             "relation_not_found",
	} {
		refused(t, dir, 1, word, append([]string{"relations"}, strings.Fields(args)...)...)
	}
}
