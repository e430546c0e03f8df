package api_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"stonetown/api"
	"stonetown/engine"
)

const (
	planPath  = "/api/v1/resource-types/plan"
	applyPath = "/api/v1/resource-types/apply"
)

// typePlans plans changes of several types, and makes one of them.
func typePlans(t *testing.T, w *world, c *client) {
	define(t, c)
	relate(t, c, "folder", "f", "viewer", user("ann"))
	relate(t, c, "document", "d", "parent", object{"type": "folder", "id": "f"})
	relate(t, c, "document", "d", "banned", user("eve"))

	folder := object{"name": "folder", "relations": []any{
		object{"name": "owner"},
		object{"name": "parent", "subjects": []any{"folder"}},
		object{"name": "viewer", "rewrites": []any{object{"kind": "computed", "relation": "owner"}}},
	}}
	note := object{"name": "note", "relations": []any{object{"name": "viewer"}}}
	question := object{"subject": user("ann"), "action": "view", "resource": resource("document", "d")}
	stranger := object{"subject": object{"type": "robot", "id": "r"}, "action": "view", "resource": resource("document", "none")}

	plan := c.want(t, 200, "", "POST", planPath, object{"types": []any{folder, note}, "questions": []any{question, stranger}})
	data := plan.data()
	equal(t, "changes", data["changes"], []any{object{"name": "folder", "change": "updated"}, object{"name": "note", "change": "created"}})
	equal(t, "illegal", data["illegal"], []any{object{
		"type": "folder", "relation": "viewer", "count": 1.0, "exact": true,
		"samples": []any{object{"resource": resource("folder", "f"), "relation": "viewer", "subject": user("ann")}},
	}})
	invalid := object{"allowed": false, "error": "subject_invalid"}
	equal(t, "answers", data["answers"], []any{
		object{"before": object{"allowed": true}, "after": object{"allowed": false}, "differs": true},
		object{"before": invalid, "after": invalid, "differs": false},
	})
	for _, affected := range data["affected"].([]any) {
		typ := affected.(object)
		if typ["type"] == "note" {
			t.Errorf("a new type is affected: %v", typ)
		}
	}
	c.want(t, 404, "resource_type_not_found", "GET", "/api/v1/resource-types/note", nil) // nothing changed
	streamed := c.want(t, 200, "", "POST", planPath+"/stream", object{"types": []any{folder, note}, "questions": []any{question, stranger}}).lines(t)
	last := streamed[len(streamed)-1]
	equal(t, "event", last["event"], "plan")
	equal(t, "streamed plan", last["data"], any(data))
	if last["meta"] == nil {
		t.Error("the streamed plan has no meta")
	}

	a := c.want(t, 409, "resource_type_in_use", "POST", applyPath, object{"types": []any{folder, note}})
	equal(t, "details", a.details(), object{"type": "folder", "relation": "viewer", "count": 1.0})
	c.want(t, 404, "resource_type_not_found", "GET", "/api/v1/resource-types/note", nil)

	c.want(t, 204, "", "DELETE", path("folder", "f")+"/relations", relation(user("ann"), "viewer"))
	revision := data["revision"]
	applied := c.want(t, 200, "", "POST", applyPath, object{"types": []any{folder, note}, "expected_revision": revision})
	equal(t, "applied", applied.data()["changes"], data["changes"])
	c.want(t, 200, "", "GET", "/api/v1/resource-types/note", nil)
	equal(t, "decision", allowed(t, c, user("ann"), "view", "document", "d"), false)

	c.want(t, 409, "resource_types_changed", "POST", planPath+"/stream", object{"expected_revision": revision})
	a = c.want(t, 409, "resource_types_changed", "POST", planPath, object{"expected_revision": revision})
	equal(t, "revision", a.details()["revision"], applied.data()["revision"])
	c.want(t, 409, "resource_types_changed", "POST", applyPath, object{"delete": []any{"note"}, "expected_revision": revision})
	again := c.want(t, 200, "", "POST", applyPath, object{"types": []any{folder}, "delete": []any{"note"}, "expected_revision": applied.data()["revision"]})
	equal(t, "changes", again.data()["changes"], []any{object{"name": "folder", "change": "unchanged"}, object{"name": "note", "change": "deleted"}})
	if same := c.want(t, 200, "", "POST", applyPath, object{"types": []any{folder}}); same.data()["revision"] != again.data()["revision"] {
		t.Error("an unchanged type has another revision")
	}

	relate(t, c, "folder", "g", "owner", user("ann"))
	gone := c.want(t, 200, "", "POST", planPath, object{"delete": []any{"folder"}}).data()
	if illegal := gone["illegal"].([]any)[0].(object); illegal["relation"] != nil || illegal["count"] != 3.0 { // folders f and g, and a relation of g
		t.Errorf("illegal after a deletion: %v", illegal)
	}
	empty := c.want(t, 200, "", "POST", planPath, object{}).data()
	for _, name := range []string{"changes", "illegal", "affected", "answers"} {
		equal(t, name, empty[name], []any{})
	}
}

// typePlansRefused sends changes that are not valid.
func typePlansRefused(t *testing.T, _ *world, c *client) {
	define(t, c)
	note := object{"name": "note", "relations": []any{object{"name": "viewer", "rewrites": []any{object{"kind": "computed", "relation": "x"}}}}}
	named := func(name string) object { return object{"name": name} }
	for _, target := range []string{planPath, planPath + "/stream", applyPath} {
		a := c.want(t, 400, "rewrite_invalid", "POST", target, object{"types": []any{named("plain"), note}})
		equal(t, "path", a.details()["path"], "types/1/relations/0/rewrites/0/relation")
		a = c.want(t, 400, "validation_failed", "POST", target, object{"types": []any{named("a"), named("Note")}})
		equal(t, "field", fields(a), []string{"types/1/name"})
		a = c.want(t, 400, "validation_failed", "POST", target, object{"types": []any{named("a"), named("a")}, "delete": []any{"b", "a"}})
		equal(t, "fields", fields(a), []string{"types/1/name", "delete/1"})
		a = c.want(t, 404, "resource_type_not_found", "POST", target, object{"delete": []any{"nothing"}})
		equal(t, "details", a.details(), object{"type": "nothing"})
		a = c.want(t, 400, "validation_failed", "POST", target, object{"expected_revision": "x"})
		equal(t, "field", fields(a), []string{"expected_revision"})
		c.want(t, 400, "invalid_json", "POST", target, "{")
		equal(t, "max", c.want(t, 400, "bulk_too_large", "POST", target, object{"delete": slices.Repeat([]any{"x"}, 1001)}).details()["max"], 1000.0)
		equal(t, "max", c.want(t, 400, "bulk_too_large", "POST", target, object{"types": slices.Repeat([]any{named("a")}, 1001)}).details()["max"], 1000.0)
	}
	equal(t, "max", c.want(t, 400, "bulk_too_large", "POST", planPath, object{
		"questions": slices.Repeat([]any{object{"subject": user("a"), "action": "view", "resource": resource("document", "d")}}, 1001),
	}).details()["max"], 1000.0)

	// A relation that other types need.
	lost := object{"name": "folder", "relations": []any{object{"name": "parent"}}}
	users := object{"name": "vault", "relations": []any{object{"name": "viewer", "subjects": []any{"folder#viewer"}}}}
	c.want(t, 200, "", "POST", applyPath, object{"types": []any{users}})
	a := c.do(t, "POST", planPath, object{"types": []any{lost}})
	if a.status != http.StatusBadRequest {
		t.Errorf("a change that makes another type invalid: %d %s", a.status, a.text)
	}
}

// renames gives a type and relations new names.
func renames(t *testing.T, w *world, c *client) {
	define(t, c)
	relate(t, c, "folder", "f", "viewer", user("ann"))
	relate(t, c, "document", "d", "parent", object{"type": "folder", "id": "f"})
	c.want(t, 201, "", "POST", "/api/v1/resources", with(resource("document", "e"), object{"attributes": object{"a": 1.0}}))
	equal(t, "decision", allowed(t, c, user("ann"), "view", "document", "d"), true)

	change := object{"renames": []any{
		object{"from": "document", "to": "paper"}, object{"type": "folder", "from": "viewer", "to": "reader"},
	}}
	question := object{"subject": user("ann"), "action": "view", "resource": resource("document", "d")}
	plan := c.want(t, 200, "", "POST", planPath, with(change, object{"questions": []any{question}})).data()
	effects := []any{
		object{"from": "document", "to": "paper", "count": 3.0, "exact": true}, // two resources and the parent of one
		object{"type": "folder", "from": "viewer", "to": "reader", "count": 1.0, "exact": true},
	}
	equal(t, "planned renames", plan["renames"], any(effects))
	equal(t, "planned answers", plan["answers"], []any{object{"before": object{"allowed": true}, "after": object{"allowed": true}, "differs": false}})
	for _, name := range []string{"illegal", "affected"} {
		equal(t, name, plan[name], []any{})
	}
	written := c.want(t, 200, "", "GET", path("folder", "f")+"/relations", nil).list()[0].(object)
	seen := len(w.events(t, c, 0))
	applied := c.under(t, "rename", "POST", applyPath, change)
	equal(t, "status", applied.status, 200)
	equal(t, "renames", applied.data()["renames"], change["renames"])
	equal(t, "again", c.under(t, "rename", "POST", applyPath, change).text, applied.text)

	var kinds []any
	events := w.events(t, c, 0)[seen:]
	for _, e := range events {
		kinds = append(kinds, string(e.Type))
	}
	equal(t, "events", kinds, []any{"resource_type.renamed", "resource_type.updated", "resource_type.updated"})
	equal(t, "decision", allowed(t, c, user("ann"), "view", "paper", "d"), true)
	equal(t, "by the former name", allowed(t, c, user("ann"), "viewer", "folder", "f"), true)
	equal(t, "by the new name", allowed(t, c, user("ann"), "reader", "folder", "f"), true)
	equal(t, "attributes", c.want(t, 200, "", "GET", path("paper", "e"), nil).data()["attributes"], any(object{"a": 1.0}))
	c.want(t, 404, "resource_type_not_found", "GET", path("document", "e"), nil)
	relations := c.want(t, 200, "", "GET", path("folder", "f")+"/relations", nil).list()
	written["relation"] = "reader" // and created as before
	equal(t, "relation", relations[0], any(written))

	// Names that are exchanged take everything with them.
	c.want(t, 200, "", "PATCH", path("paper", "e"), object{"attributes": object{"a": 2.0}})
	first := c.want(t, 200, "", "GET", "/api/v1/resources?limit=1&type=paper", nil)
	exchange := object{"renames": []any{object{"from": "paper", "to": "folder"}, object{"from": "folder", "to": "paper"}}}
	c.want(t, 200, "", "POST", applyPath, exchange)
	equal(t, "attributes", c.want(t, 200, "", "GET", path("folder", "e"), nil).data()["attributes"], any(object{"a": 2.0}))
	c.want(t, 404, "resource_not_found", "GET", path("paper", "e"), nil)
	equal(t, "decision", allowed(t, c, user("ann"), "reader", "paper", "f"), true)
	c.want(t, 400, "cursor_invalid", "GET", "/api/v1/resources?limit=1&type=paper&cursor="+first.meta("next_cursor").(string), nil)
	c.want(t, 204, "", "DELETE", path("folder", "e"), nil)
	c.want(t, 201, "", "POST", "/api/v1/resources", resource("folder", "e"))
	equal(t, "attributes", c.want(t, 200, "", "GET", path("folder", "e"), nil).data()["attributes"], nil)
	c.want(t, 200, "", "POST", applyPath, exchange)

	// What cannot be renamed.
	refuse := func(status int, code string, rename object) answer {
		t.Helper()
		c.want(t, status, code, "POST", planPath, object{"renames": []any{rename}})
		c.want(t, status, code, "POST", planPath+"/stream", object{"renames": []any{rename}})
		return c.want(t, status, code, "POST", applyPath, object{"renames": []any{rename}})
	}
	equal(t, "details", refuse(404, "resource_type_not_found", object{"from": "document", "to": "x"}).details(), object{"type": "document"})
	equal(t, "details", refuse(400, "relation_undefined", object{"type": "folder", "from": "viewer", "to": "x"}).details(), object{"type": "folder", "relation": "viewer"})
	equal(t, "details", refuse(409, "name_taken", object{"from": "paper", "to": "folder"}).details(), object{"rename": "paper=folder"})
	refuse(409, "name_taken", object{"type": "folder", "from": "reader", "to": "owner"})
	equal(t, "field", fields(refuse(400, "validation_failed", object{"from": "paper", "to": "Paper"})), []string{"renames/0/to"})
	equal(t, "field", fields(refuse(400, "validation_failed", object{"from": "group", "to": "team"})), []string{"renames/0/from"})
	equal(t, "field", fields(refuse(400, "validation_failed", object{"type": "group", "from": "member", "to": "x"})), []string{"renames/0/type"})
	equal(t, "field", fields(refuse(400, "validation_failed", object{"from": "paper", "to": "user"})), []string{"renames/0/to"})
	equal(t, "fields", fields(refuse(400, "validation_failed", object{})), []string{"renames/0/from", "renames/0/to"})
	c.want(t, 400, "validation_failed", "POST", applyPath, object{
		"renames": []any{object{"from": "paper", "to": "sheet"}}, "types": []any{object{"name": "paper"}},
	})
	equal(t, "max", c.want(t, 400, "bulk_too_large", "POST", applyPath, object{"renames": slices.Repeat([]any{object{"from": "paper", "to": "x"}}, 101)}).details()["max"], 100.0)

	// More than a plan counts.
	c.want(t, 200, "", "POST", applyPath, object{"types": []any{object{"name": "many", "relations": []any{object{"name": "viewer"}}}}})
	for n := range 11 {
		var ops []any
		for i := range 500 {
			ops = append(ops, with(object{"op": "create", "resource": resource("many", fmt.Sprint(500*n+i))}, relation(user("ann"), "viewer")))
		}
		c.want(t, 200, "", "POST", bulkPath, object{"operations": ops})
	}
	many := object{"renames": []any{object{"from": "many", "to": "more"}}}
	equal(t, "planned", c.want(t, 200, "", "POST", planPath, many).data()["renames"], []any{object{"from": "many", "to": "more", "count": 10000.0, "exact": false}})
	c.want(t, 200, "", "POST", applyPath, many)
	equal(t, "decision", allowed(t, c, user("ann"), "view", "more", "5499"), true)

	// The relation is read along parents of two types, all of which have to be readable.
	direct := []any{object{"name": "reader"}}
	c.want(t, 200, "", "POST", applyPath, object{"types": []any{
		object{"name": "left", "relations": direct},
		object{"name": "right", "relations": direct},
		object{"name": "both", "relations": []any{
			object{"name": "parent", "subjects": []any{"left", "right"}},
			object{"name": "reader", "rewrites": []any{object{"kind": "tuple_to_userset", "tupleset": "parent", "computed": "reader", "mode": "all"}}},
		}},
	}})
	refuse(409, "rename_ambiguous", object{"type": "left", "from": "reader", "to": "viewer"})

	// A webhook subscription sees what the readers of a folder may see.
	hook, _ := subscribe(t, c, "https://hooks.example.com/x", object{"visible_to": object{"subject": object{"type": "folder", "id": "f", "relation": "reader"}, "action": "view"}}, "*")
	inUse := refuse(409, "resource_type_in_use", object{"from": "folder", "to": "area"})
	equal(t, "used by", inUse.details()["used_by"], any(object{"type": "webhook_subscription", "id": hook}))
	equal(t, "relation", refuse(409, "resource_type_in_use", object{"type": "folder", "from": "reader", "to": "x"}).details()["relation"], "reader")
	c.want(t, 200, "", "POST", applyPath, object{"renames": []any{object{"type": "folder", "from": "owner", "to": "x"}}})
}

// repeatedTypes sends a change twice under one key.
func repeatedTypes(t *testing.T, _ *world, c *client) {
	define(t, c)
	revision := c.want(t, 200, "", "POST", planPath, object{}).data()["revision"]
	change := object{"types": []any{object{"name": "note"}}, "expected_revision": revision}
	first := c.under(t, "once", "POST", applyPath, change)
	second := c.under(t, "once", "POST", applyPath, change)
	equal(t, "answer", second.text, first.text)
	equal(t, "status", second.status, 200)
	equal(t, "another change", c.under(t, "once", "POST", applyPath, object{"delete": []any{"note"}}).status, 422)
}

// slowPlans is an engine that counts for a second.
type slowPlans struct{ api.Engine }

func (e slowPlans) PlanTypes(ctx context.Context, tenant string, req engine.PlanRequest) (*engine.TypesPlan, error) {
	for n := range 100 {
		time.Sleep(10 * time.Millisecond)
		if err := req.Progress(1000 * n); err != nil {
			return nil, err
		}
	}
	return e.Engine.PlanTypes(ctx, tenant, req)
}

// planProgress follows a plan that takes a while.
func planProgress(t *testing.T) {
	w := newWorld(t, databases["SQLite"](t), func(c *api.Config) { c.Engine = slowPlans{c.Engine} })
	c := w.tenant(t, "slow")
	began := time.Now()
	lines := c.want(t, 200, "", "POST", planPath+"/stream", object{}).lines(t)
	last, most := len(lines)-1, int(time.Since(began)/(250*time.Millisecond)) // one in a quarter of a second
	if last == 0 || last > most || lines[last]["event"] != "plan" {
		t.Fatalf("at most %d of %v", most, lines)
	}
	counted := 0.0
	for _, line := range lines[:last] {
		if n, _ := line["counted"].(float64); line["event"] != "progress" || n <= counted {
			t.Errorf("%v", line)
		} else {
			counted = n
		}
	}
}
