package main

import (
	"strings"
	"testing"
)

func TestListCommand(t *testing.T) {
	dir := development(t)
	want(t, dir, "schema", "apply", writeFile(t, documents))
	for _, relation := range []string{
		"folder:2026 viewer group:eng", "group:eng member user:ann", "document:q3 parent folder:2026", "document:q4 parent folder:2026", "document:r1 viewer user:ann",
	} {
		want(t, dir, append([]string{"relations", "add"}, strings.Fields(relation)...)...)
	}
	for args, out := range map[string]string{
		"resources user:ann view document":                       "document:q3\ndocument:q4\ndocument:r1\n",
		"resources user:ann view document --id-prefix q":         "document:q3\ndocument:q4\n",
		"resources user:ann view document view folder":           "document:q3 view\ndocument:q4 view\ndocument:r1 view\nfolder:2026 view\n",
		"resources user:bob view document":                       "",
		"resources user:ann view document --count 3":             "3\n",
		"resources user:ann view document --count 2":             "2+\n",
		"resources user:ann view document --count 2 -o json":     "{\n  \"count\": 2,\n  \"exact\": false\n}\n",
		"subjects user view document:q3":                         "user:ann\n",
		"subjects group view document:q3":                        "group:eng\n",
		"subjects folder view document:q3 --relation viewer":     "folder:2026#viewer\n",
		"subjects user view document:q3 --id-prefix b":           "",
		"actions user:ann document:q3":                           "view\nviewer\n",
		"actions user:bob document:q3":                           "",
		"resources user:ann view document --id-prefix r -o json": "[\n  {\n    \"actions\": [\n      \"view\"\n    ],\n    \"external_id\": \"r1\",\n    \"type\": \"document\"\n  }\n]\n",
	} {
		if got := want(t, dir, append([]string{"list"}, strings.Fields(args)...)...); got != out {
			t.Errorf("%s: %q, want %q", args, got, out)
		}
	}
	for args, word := range map[string]string{
		"resources user:ann view":                    "SUBJECT ACTION TYPE",
		"resources ann view document":                "not a subject",
		"resources user:ann view paper":              "resource_type_not_found",
		"resources user:ann view document --count 0": "between 1 and 10000",
		"subjects user view q3":                      "not a resource",
		"actions user:ann document:none":             "resource_not_found",
		"actions user:ann document:q3 --context [1]": "--context is not a JSON object",
	} {
		refused(t, dir, 1, word, append([]string{"list"}, strings.Fields(args)...)...)
	}
}
