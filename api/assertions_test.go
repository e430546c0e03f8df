package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
)

const assertionsPath = "/api/v1/assertions"

// storedAssertions stores assertions and runs them with changed types.
func storedAssertions(t *testing.T, w *world, c *client) {
	define(t, c)
	relate(t, c, "document", "d", "viewer", user("eve")) // not a part of the assertions
	doc := func(id string) object { return resource("document", id) }
	fact := func(r object, relation string, subject object) object {
		return object{"resource": r, "relation": relation, "subject": subject}
	}
	question := func(subject, r object) object {
		return object{"subject": subject, "action": "view", "resource": r}
	}
	set := object{
		"relations": []any{
			fact(resource("folder", "f"), "owner", user("ann")), fact(doc("d"), "parent", object{"type": "folder", "id": "f"}),
			with(fact(doc("d"), "viewer", user("temp")), object{"expires_at": "2027-01-01T00:00:00Z"}),
		},
		"tests": []any{
			object{
				"name":  "owners of folders view",
				"allow": []any{with(question(user("ann"), doc("d")), object{"reasons": []any{"document:d#parent@folder:f"}})},
				"deny":  []any{question(user("eve"), doc("d")), question(user("ann"), doc("none"))},
			},
			object{"name": "before", "at": "2026-12-31T23:59:59Z", "allow": []any{question(user("temp"), doc("d"))}},
			object{"name": "after", "at": "2027-01-01T00:00:00Z", "deny": []any{question(user("temp"), doc("d"))}},
			object{
				"relations": []any{fact(doc("e"), "viewer", user("bob"))},
				"resources": []any{object{"subject": user("bob"), "action": "view", "type": "document", "ids": []any{"e"}}},
				"subjects":  []any{object{"resource": doc("e"), "action": "view", "subject_type": "user", "ids": []any{"bob"}}},
			},
		},
	}
	before := len(w.events(t, c, 0))
	created := c.want(t, 201, "", "PUT", assertionsPath+"/documents", set)
	equal(t, "location", created.header.Get("Location"), assertionsPath+"/documents")
	equal(t, "assertions", created.data()["assertions"], 7.0)
	equal(t, "tests", created.data()["tests"], set["tests"])
	equal(t, "again", c.want(t, 200, "", "PUT", assertionsPath+"/documents", set).data(), created.data())
	equal(t, "read", c.want(t, 200, "", "GET", assertionsPath+"/documents", nil).data(), created.data())
	c.want(t, 201, "", "PUT", assertionsPath+"/broken", object{"tests": []any{object{"allow": []any{question(user("ann"), doc("d"))}}}})
	happened := w.events(t, c, before)
	equal(t, "events", len(happened), 2)
	equal(t, "event", string(happened[0].Type), "assertions.stored")
	equal(t, "data", parse(t, string(happened[0].Data)), object{"assertions": object{"name": "documents", "count": 7.0}})

	names := func(a answer) (names []any) {
		for _, s := range a.list() {
			names = append(names, s.(object)["name"])
		}
		return names
	}
	page := c.want(t, 200, "", "GET", assertionsPath+"?limit=1", nil)
	equal(t, "names", names(page), []any{"broken"})
	equal(t, "names", names(c.want(t, 200, "", "GET", assertionsPath+"?limit=1&cursor="+page.meta("next_cursor").(string), nil)), []any{"documents"})
	c.want(t, 400, "cursor_invalid", "GET", assertionsPath+"?cursor=x", nil)
	c.want(t, 400, "validation_failed", "GET", assertionsPath+"?limit=0", nil)

	// A set runs with the types as they are, or another one in its place, which is not stored.
	run := func(name string, body any) object {
		t.Helper()
		return c.want(t, 200, "", "POST", assertionsPath+"/"+name+"/run", body).data()
	}
	equal(t, "run", run("documents", object{}), object{"sets": 1.0, "assertions": 7.0, "failed": 0.0, "failures": []any{}})
	equal(t, "run", run("broken", object{})["failures"], []any{object{"set": "broken", "index": 0.0, "question": "may user:ann view document:d?", "expected": []any{"allowed"}, "before": []any{"denied"}, "after": []any{"denied"}}})
	equal(t, "another", run("unsaved", object{"set": object{"tests": []any{object{"deny": []any{question(user("eve"), doc("d"))}}}}})["failed"], 0.0)
	c.want(t, 404, "assertions_not_found", "POST", assertionsPath+"/unsaved/run", object{})
	c.want(t, 400, "validation_failed", "POST", assertionsPath+"/documents/run", object{"set": object{"tests": []any{}}})
	c.want(t, 400, "bulk_too_large", "POST", assertionsPath+"/documents/run", object{"set": object{"tests": slices.Repeat([]any{object{}}, 201)}})
	c.with(w.token(t, c, w.application(t, c, "users:read"))).want(t, 403, "insufficient_scope", "POST", assertionsPath+"/documents/run", object{})

	// A plan runs them with the planned types, on their own relations.
	report := func(types ...any) object {
		t.Helper()
		return c.want(t, 200, "", "POST", planPath, object{"types": types}).data()["assertions"].(object)
	}
	note := object{"name": "note"}
	always := object{
		"set": "broken", "index": 0.0, "question": "may user:ann view document:d?",
		"expected": []any{"allowed"}, "before": []any{"denied"}, "after": []any{"denied"},
	}
	equal(t, "report", report(note), object{"sets": 2.0, "assertions": 8.0, "failed": 1.0, "failures": []any{always}})
	equal(t, "report", c.want(t, 200, "", "POST", planPath, object{}).data()["assertions"], object{"sets": 0.0, "assertions": 0.0, "failed": 0.0, "failures": []any{}})
	folder := object{"name": "folder", "relations": []any{object{"name": "owner"}, object{"name": "parent"}, object{"name": "viewer"}}}
	lost := object{
		"set": "documents", "index": 0.0, "test": "owners of folders view", "question": "may user:ann view document:d?",
		"expected": []any{"allowed"}, "before": []any{"allowed"}, "after": []any{"denied"},
	}
	failed := object{"sets": 2.0, "assertions": 8.0, "failed": 2.0, "failures": []any{always, lost}}
	equal(t, "report", report(folder), failed)
	narrow := object{"name": "folder", "relations": []any{object{"name": "viewer"}}}
	if r := report(narrow); r["failed"] != 8.0 {
		t.Errorf("types that do not allow the relations: %v", r)
	}

	// A change can require them.
	change := object{"types": []any{folder}, "require_assertions": true}
	equal(t, "details", c.want(t, 409, "assertions_failed", "POST", applyPath, change).details(), object{"failed": 2.0, "report": failed})
	writer := c.with(w.token(t, c, w.application(t, c, "resources:write")))
	equal(t, "details", writer.want(t, 409, "assertions_failed", "POST", applyPath, change).details(), object{"failed": 2.0})
	c.want(t, 200, "", "POST", applyPath, object{"types": []any{note}})
	c.want(t, 409, "assertions_failed", "POST", applyPath, object{"delete": []any{"note"}, "require_assertions": true})
	before = len(w.events(t, c, 0))
	c.want(t, 204, "", "DELETE", assertionsPath+"/broken", nil)
	equal(t, "event", string(w.events(t, c, before)[0].Type), "assertions.deleted")
	c.want(t, 200, "", "POST", applyPath, object{"delete": []any{"note"}, "require_assertions": true})
	c.want(t, 200, "", "POST", applyPath, object{"types": []any{object{"name": "later"}}, "require_assertions": true})
	c.want(t, 409, "assertions_failed", "POST", applyPath, change)

	// A set that another release has stored, which this one cannot read.
	c.want(t, 201, "", "PUT", assertionsPath+"/unreadable", set)
	_, err := w.db.Exec(t.Context(), `UPDATE assertion_sets SET document = $1 WHERE name = 'unreadable' AND tenant_id = (SELECT id FROM tenants WHERE slug = $2)`, `{"tests":1}`, c.name())
	if err != nil {
		t.Fatal(err)
	}
	unread := object{"sets": 1.0, "assertions": 14.0, "failed": 7.0, "failures": []any{}, "unreadable": []any{"unreadable"}}
	equal(t, "report", report(object{"name": "another"}), unread)
	readable := object{"types": []any{object{"name": "another"}}, "require_assertions": true}
	equal(t, "details", c.want(t, 409, "assertions_failed", "POST", applyPath, readable).details(), object{"failed": 7.0, "report": unread})
	c.want(t, 204, "", "DELETE", assertionsPath+"/unreadable", nil)
	c.want(t, 200, "", "POST", applyPath, readable)

	for _, method := range []string{"GET", "DELETE"} {
		c.want(t, 404, "assertions_not_found", method, assertionsPath+"/broken", nil)
	}
	for _, method := range []string{"PUT", "DELETE"} {
		header := http.Header{"Idempotency-Key": {long(256)}, "Content-Type": {"application/json"}}
		equal(t, "a long key", c.send(t, method, assertionsPath+"/x", header, []byte("{}")).code(), "idempotency_key_invalid")
	}
}

// invalidAssertions stores nothing.
func invalidAssertions(t *testing.T, _ *world, c *client) {
	ask := object{"subject": user("ann"), "action": "view", "resource": resource("document", "d")}
	for name, body := range map[string]struct {
		in    any
		field string
	}{
		"nothing":       {object{}, "tests"},
		"no assertion":  {object{"tests": []any{object{"name": "x"}}}, "tests"},
		"time":          {object{"tests": []any{object{"at": "now", "deny": []any{ask}}}}, "tests/0/at"},
		"name":          {object{"tests": []any{object{"name": "a\nb", "deny": []any{ask}}}}, "tests/0/name"},
		"context":       {object{"tests": []any{object{"context": []any{}, "deny": []any{ask}}}}, "tests/0/context"},
		"action":        {object{"tests": []any{object{"deny": []any{with(ask, object{"action": ""})}}}}, "tests/0/deny/0/action"},
		"reasons":       {object{"tests": []any{object{"allow": []any{with(ask, object{"reasons": slices.Repeat([]any{"x"}, 51)})}}}}, "tests/0/allow/0/reasons"},
		"no ids":        {object{"tests": []any{object{"resources": []any{object{"subject": user("a"), "action": "view", "type": "document"}}}}}, "tests/0/resources/0/ids"},
		"empty id":      {object{"tests": []any{object{"subjects": []any{object{"resource": resource("document", "d"), "action": "view", "subject_type": "user", "ids": []any{""}}}}}}, "tests/0/subjects/0/ids/0"},
		"many ids":      {object{"tests": []any{object{"subjects": []any{object{"resource": resource("document", "d"), "action": "view", "subject_type": "user", "ids": slices.Repeat([]any{"x"}, 1001)}}}}}, "tests/0/subjects/0/ids"},
		"relation":      {object{"relations": []any{object{"resource": resource("document", "d"), "relation": "", "subject": user("a")}}, "tests": []any{object{"deny": []any{ask}}}}, "relations/0/relation"},
		"test relation": {object{"tests": []any{object{"relations": []any{object{"resource": resource("document", "*"), "relation": "r", "subject": user("a")}}, "deny": []any{ask}}}}, "tests/0/relations/0/resource/external_id"},
	} {
		a := c.want(t, 400, "validation_failed", "PUT", assertionsPath+"/x", body.in)
		equal(t, name, fields(a), []string{body.field})
	}
	equal(t, "name", fields(c.want(t, 400, "validation_failed", "PUT", assertionsPath+"/X", object{"tests": []any{object{"deny": []any{ask}}}})), []string{"name"})
	c.want(t, 400, "invalid_json", "PUT", assertionsPath+"/x", "{")
	many := slices.Repeat([]any{ask}, 101)
	for most, in := range map[float64]object{
		500: {"relations": slices.Repeat([]any{object{"resource": resource("document", "d"), "relation": "r", "subject": user("a")}}, 501)},
		200: {"tests": []any{object{"allow": many}, object{"deny": many}}},
		100: {"tests": []any{object{"relations": slices.Repeat([]any{object{"resource": resource("document", "d"), "relation": "r", "subject": user("a")}}, 101)}}},
	} {
		equal(t, "max", c.want(t, 400, "bulk_too_large", "PUT", assertionsPath+"/x", in).details()["max"], most)
	}
	c.want(t, 400, "bulk_too_large", "PUT", assertionsPath+"/x", object{"tests": slices.Repeat([]any{object{}}, 201)})
	equal(t, "stored", len(c.want(t, 200, "", "GET", assertionsPath, nil).list()), 0)

	small := object{"tests": []any{object{"deny": []any{ask}}}}
	for i := range 100 {
		c.want(t, 201, "", "PUT", fmt.Sprintf("%s/s%d", assertionsPath, i), small)
	}
	equal(t, "limit", c.want(t, 409, "assertion_set_limit_reached", "PUT", assertionsPath+"/more", small).details()["limit"], 100.0)
	c.want(t, 200, "", "PUT", assertionsPath+"/s0", with(small, object{"relations": []any{}}))
}
