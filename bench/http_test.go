package bench

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/valyala/fasthttp"

	"stonetown/tuplestore"
)

// TestHTTPWrite sends relations in one request, in the form of the API.
func TestHTTPWrite(t *testing.T) {
	var paths []string
	var body map[string]any
	url := listening(t, func(r *fasthttp.RequestCtx) {
		paths = append(paths, string(r.Path()))
		if err := json.Unmarshal(r.PostBody(), &body); err != nil {
			r.Error(err.Error(), fasthttp.StatusBadRequest)
		}
	})
	err := newHTTP(url, "token", 1).Write(t.Context(), []tuplestore.Tuple{
		{Object: object("document", `"`, 1), Relation: "viewer", Subject: user(2)},
		{Object: object("document", "d", 3), Relation: "parent", Subject: asSubject(object("folder", "f", 4), "viewer")},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"operations": []any{
		map[string]any{
			"op": "create", "resource": map[string]any{"type": "document", "external_id": `"1`}, "relation": "viewer",
			"subject": map[string]any{"type": "user", "id": "u2"},
		},
		map[string]any{
			"op": "create", "resource": map[string]any{"type": "document", "external_id": "d3"}, "relation": "parent",
			"subject": map[string]any{"type": "folder", "id": "f4", "relation": "viewer"},
		},
	}}
	if diff := cmp.Diff(want, body); diff != "" || len(paths) != 1 || paths[0] != "/api/v1/resources/relations/bulk" {
		t.Errorf("sent to %q (-want +got):\n%s", paths, diff)
	}
}
