package main

import (
	"encoding/json"
	"strings"
	"testing"

	apiclient "stonetown/client"
)

func TestExpandCommand(t *testing.T) {
	dir := development(t)
	want(t, dir, "schema", "apply", writeFile(t, documents))
	for _, relation := range []string{"folder:2026 viewer group:eng", "group:eng member user:ann", "document:q3 parent folder:2026", "document:q3 viewer user:bob --expires-at 2099-01-01T00:00:00Z"} {
		want(t, dir, append([]string{"relations", "add"}, strings.Fields(relation)...)...)
	}
	for args, out := range map[string]string{
		"document:q3 view": `document:q3#viewer union
  document:q3#viewer this
    user:bob until 2099-01-01T00:00:00.000Z
  document:q3#viewer tuple_to_userset by parent
    folder:2026
    folder:2026#viewer union
      folder:2026#viewer this
        group:eng
        group:eng#member union (depth)
      folder:2026#viewer computed
        folder:2026#owner this
`,
		"document:q3 view --depth 3": `document:q3#viewer union
  document:q3#viewer this
    user:bob until 2099-01-01T00:00:00.000Z
  document:q3#viewer tuple_to_userset by parent
    folder:2026
    folder:2026#viewer union
      folder:2026#viewer this
        group:eng
        group:eng#member this
          user:ann
      folder:2026#viewer computed
        folder:2026#owner this
`,
	} {
		if got := want(t, dir, append([]string{"expand"}, strings.Fields(args)...)...); got != out {
			t.Errorf("%s:\n%s\nwant\n%s", args, got, out)
		}
	}
	var out strings.Builder
	excluded := apiclient.Expansion{Kind: "exclusion", Relation: "viewer", Resource: apiclient.Ref{Type: "document", ExternalID: "q3"}}
	excluded.Children = []apiclient.Expansion{
		{Kind: "this", Relation: "viewer", Resource: excluded.Resource}, {Kind: "this", Relation: "banned", Resource: excluded.Resource},
	}
	if err := printExpansion(&out, excluded, 0, ""); err != nil || out.String() != "document:q3#viewer exclusion\n  document:q3#viewer this\n  except document:q3#banned this\n" {
		t.Errorf("%s, %v", &out, err)
	}
	var root apiclient.Expansion
	if err := json.Unmarshal([]byte(want(t, dir, "expand", "document:q3", "view", "-o", "json")), &root); err != nil || root.Relation != "viewer" {
		t.Errorf("%+v, %v", root, err)
	}
	for args, word := range map[string]string{
		"document:q3":                 "accepts 2 arg",
		"q3 view":                     "not a resource",
		"document:q3 fly":             "relation_undefined",
		"document:none view":          "resource_not_found",
		"document:q3 view --depth 51": "depth",
	} {
		refused(t, dir, 1, word, append([]string{"expand"}, strings.Fields(args)...)...)
	}
}
