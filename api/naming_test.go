package api_test

import (
	"fmt"
	"net/url"
	"testing"
)

// naming returns the path of the relations of a subject.
func naming(subject object, more ...string) string {
	query := url.Values{"subject_type": {subject["type"].(string)}, "subject_id": {subject["id"].(string)}}
	for i := 0; i < len(more); i += 2 {
		query.Set(more[i], more[i+1])
	}
	return "/api/v1/relations?" + query.Encode()
}

// subjectRelations lists and deletes the relations of a subject over all resources.
func subjectRelations(t *testing.T, w *world, c *client) {
	define(t, c)
	ann := user("ann")
	for i := range 3 {
		relate(t, c, "document", fmt.Sprint("d", i), "viewer", ann)
	}
	relate(t, c, "document", "d0", "owner", ann)
	relate(t, c, "folder", "f", "viewer", ann)
	relate(t, c, "document", "d0", "viewer", user("bob"))
	relate(t, c, "document", "d0", "viewer", user("*"))
	viewers := object{"type": "folder", "id": "f", "relation": "viewer"}
	relate(t, c, "document", "d0", "viewer", viewers)
	relate(t, c, "document", "d0", "parent", object{"type": "folder", "id": "f"})
	folder := object{"type": "folder", "id": "f"}

	listed := func(target string) []string {
		t.Helper()
		var found []string
		for _, item := range c.want(t, 200, "", "GET", target, nil).list() {
			r := item.(map[string]any)
			o, s := r["resource"].(map[string]any), r["subject"].(map[string]any)
			found = append(found, fmt.Sprintf("%s:%s#%s@%s:%s%v", o["type"], o["external_id"], r["relation"], s["type"], s["id"], s["relation"]))
		}
		return found
	}
	equal(t, "all", listed(naming(ann)), []string{
		"document:d0#owner@user:ann<nil>", "document:d0#viewer@user:ann<nil>", "document:d1#viewer@user:ann<nil>", "document:d2#viewer@user:ann<nil>", "folder:f#viewer@user:ann<nil>",
	})
	equal(t, "of a type", len(listed(naming(ann, "resource_type", "folder"))), 1)
	equal(t, "of a relation", len(listed(naming(ann, "relation", "viewer"))), 4)
	equal(t, "of a resource", len(listed(naming(ann, "resource_type", "document", "external_id", "d0"))), 2)
	equal(t, "everyone", listed(naming(user("*"))), []string{"document:d0#viewer@user:*<nil>"})
	equal(t, "an object and its usersets", listed(naming(folder)), []string{"document:d0#parent@folder:f<nil>", "document:d0#viewer@folder:fviewer"})
	equal(t, "a userset", listed(naming(folder, "subject_relation", "viewer")), []string{"document:d0#viewer@folder:fviewer"})
	equal(t, "nobody", len(listed(naming(user("ghost")))), 0)

	var paged []string
	target := naming(ann, "limit", "2")
	for target != "" {
		a := c.want(t, 200, "", "GET", target, nil)
		for _, item := range a.list() {
			paged = append(paged, item.(map[string]any)["resource"].(map[string]any)["external_id"].(string))
		}
		target = ""
		if next := a.meta("next_cursor"); next != nil {
			target = naming(ann, "limit", "2", "cursor", next.(string))
			c.want(t, 400, "cursor_invalid", "GET", naming(user("bob"), "limit", "2", "cursor", next.(string)), nil)
		}
	}
	equal(t, "pages", paged, []string{"d0", "d0", "d1", "d2", "f"})

	for _, method := range []string{"GET", "DELETE"} {
		c.want(t, 400, "validation_failed", method, "/api/v1/relations", nil)
		c.want(t, 400, "validation_failed", method, "/api/v1/relations?subject_id=ann", nil)
		c.want(t, 400, "validation_failed", method, naming(ann, "external_id", "d0"), nil)
		for _, wrong := range []string{"relation=", "external_id=", "resourcetype=document", "relation=viewer&relation=owner", "subject_id=bob"} {
			c.want(t, 400, "validation_failed", method, naming(ann)+"&"+wrong, nil)
		}
		c.want(t, 400, "subject_invalid", method, naming(object{"type": "ghost", "id": "x"}), nil)
		c.want(t, 400, "subject_invalid", method, naming(ann, "subject_relation", "friend"), nil)
		c.want(t, 404, "resource_type_not_found", method, naming(ann, "resource_type", "ghost"), nil)
		c.want(t, 400, "relation_undefined", method, naming(ann, "resource_type", "document", "relation", "ghost"), nil)
	}

	// A deletion reports its count, commits its event, and executes once under a key.
	before := len(w.events(t, c, 0))
	first := c.under(t, "once", "DELETE", naming(ann, "relation", "viewer", "resource_type", "document"), nil)
	equal(t, "deleted", first.data(), object{"deleted": 3.0, "has_more": false, "limit": 500.0})
	relate(t, c, "document", "d1", "viewer", ann)
	again := c.under(t, "once", "DELETE", naming(ann, "relation", "viewer", "resource_type", "document"), nil)
	equal(t, "replayed", again.data(), first.data())
	equal(t, "left", len(listed(naming(ann))), 3)
	happened := w.events(t, c, before)
	equal(t, "event", string(happened[0].Type), "relation.bulk_applied")
	equal(t, "userset", c.want(t, 200, "", "DELETE", naming(folder, "subject_relation", "viewer"), nil).data()["deleted"], 1.0)
	equal(t, "the folder is still the parent", listed(naming(folder)), []string{"document:d0#parent@folder:f<nil>"})
	equal(t, "rest", c.want(t, 200, "", "DELETE", naming(ann), nil).data()["deleted"], 3.0)
	a := c.want(t, 200, "", "DELETE", naming(ann), nil)
	equal(t, "nothing", a.data()["deleted"], 0.0)
	equal(t, "others", allowed(t, c, user("bob"), "view", "document", "d0"), true)
}

// manySubjectRelations deletes more relations than one request can, and keeps those of other
// operations.
func manySubjectRelations(t *testing.T, _ *world, c *client) {
	define(t, c)
	ids := makeUsers(t, c, "naming", 1)
	ann := user(ids[0])
	g := group(t, c, "named", "resources:read")
	c.want(t, 201, "", "POST", groupsPath+"/"+g+"/members", object{"user_id": ids[0]})
	for from := 0; from < 1001; from += 500 {
		var ops []any
		for i := from; i < min(from+500, 1001); i++ {
			ops = append(ops, op("create", "document", fmt.Sprint("m", i), "viewer", ann))
		}
		c.want(t, 200, "", "POST", "/api/v1/resources/relations/bulk", object{"operations": ops})
	}
	for _, want := range []object{
		{"deleted": 500.0, "has_more": true, "limit": 500.0},
		{"deleted": 500.0, "has_more": true, "limit": 500.0},
		{"deleted": 1.0, "has_more": false, "limit": 500.0},
		{"deleted": 0.0, "has_more": false, "limit": 500.0},
	} {
		equal(t, "deleted", c.want(t, 200, "", "DELETE", naming(ann), nil).data(), want)
	}
	equal(t, "still a member", len(c.want(t, 200, "", "GET", groupsPath+"/"+g+"/members", nil).list()), 1)
	equal(t, "what stays", len(c.want(t, 200, "", "GET", naming(ann), nil).list()), 1)
}

// pastExpiry refuses relations that would have expired before they are written.
func pastExpiry(t *testing.T, _ *world, c *client) {
	define(t, c)
	target := path("document", "d") + "/relations"
	past := object{"expires_at": "2001-01-01T00:00:00Z"}
	a := c.want(t, 400, "validation_failed", "POST", target, with(relation(user("ann"), "viewer"), past))
	equal(t, "fields", fields(a), []string{"expires_at"})
	ops := []any{op("create", "document", "d", "viewer", user("bob")), with(op("create", "document", "d", "viewer", user("ann")), past)}
	a = c.want(t, 400, "validation_failed", "POST", bulkPath, object{"operations": ops})
	equal(t, "index", a.details()["index"], 1.0)
	c.want(t, 404, "resource_not_found", "GET", path("document", "d"), nil) // nothing was written

	// Condition and expiry are ignored by deletions.
	relate(t, c, "document", "d", "viewer", user("ann"))
	c.want(t, 400, "validation_failed", "POST", target, with(relation(user("ann"), "viewer"), past)) // in place of one that holds, too
	c.want(t, 204, "", "DELETE", target, with(relation(user("ann"), "viewer"), past))
	relate(t, c, "document", "d", "viewer", user("ann"))
	c.want(t, 200, "", "POST", bulkPath, object{"operations": []any{with(op("delete", "document", "d", "viewer", user("ann")), past)}})

	// An expired contextual relation has no effect.
	question := with(check(user("eve"), "view", resource("document", "d")), object{
		"contextual_relations": []any{with(object{"resource": resource("document", "d")}, with(relation(user("eve"), "viewer"), past))},
	})
	equal(t, "contextual", c.want(t, 200, "", "POST", checkPath, question).data()["allowed"], false)
}

// newRewrites defines intersection arrows and self, and checks the wildcard subject.
func newRewrites(t *testing.T, _ *world, c *client) {
	definition := object{"name": "paper", "description": "", "actions": object{}, "conditions": []any{}, "relations": []any{
		object{"name": "author", "rewrites": []any{}, "subjects": []any{"paper", "user"}},
		object{"name": "reader", "rewrites": []any{}, "subjects": []any{"user", "user:*"}},
		object{"name": "every", "rewrites": []any{object{"kind": "tuple_to_userset", "tupleset": "author", "computed": "own", "mode": "all"}}},
		object{"name": "any", "rewrites": []any{object{"kind": "tuple_to_userset", "tupleset": "author", "computed": "own"}}},
		object{"name": "own", "rewrites": []any{object{"kind": "self"}}},
	}}
	made := c.want(t, 201, "", "POST", "/api/v1/resource-types", definition).data()
	equal(t, "definition", made["relations"], definition["relations"])
	equal(t, "stored", c.want(t, 200, "", "GET", "/api/v1/resource-types/paper", nil).data()["relations"], definition["relations"])
	loose := definition["relations"].([]any)[3].(object)["rewrites"].([]any)[0].(object)
	c.want(t, 200, "", "POST", "/api/v1/resource-types", with(definition, object{"relations": append([]any{object{
		"name": "default", "rewrites": []any{with(loose, object{"mode": "any"})},
	}}, definition["relations"].([]any)...)}))
	for _, mode := range []string{"most", "ALL"} {
		a := c.want(t, 400, "rewrite_invalid", "POST", "/api/v1/resource-types", with(definition, object{"relations": append([]any{object{
			"name": "wrong", "rewrites": []any{with(loose, object{"mode": mode})},
		}}, definition["relations"].([]any)...)}))
		equal(t, "path", a.details()["path"], "relations/0/rewrites/0/mode")
	}

	paper := func(id string) object { return object{"type": "paper", "id": id} }
	relate(t, c, "paper", "p", "author", paper("p"))
	equal(t, "every", allowed(t, c, paper("p"), "every", "paper", "p"), true)
	relate(t, c, "paper", "p", "author", paper("q"))
	equal(t, "not every", allowed(t, c, paper("p"), "every", "paper", "p"), false)
	equal(t, "any", allowed(t, c, paper("q"), "any", "paper", "p"), true)
	tree := c.want(t, 200, "", "POST", expandPath, object{"resource": resource("paper", "p"), "action": "every", "depth": 2}).data()
	equal(t, "mode", tree["mode"], "all")
	equal(t, "links", tree["links"], []any{object{"subject": paper("p")}, object{"subject": paper("q")}})
	equal(t, "self", tree["children"].([]any)[0].(map[string]any)["kind"], "self")

	relate(t, c, "paper", "p", "reader", user("ann"))
	equal(t, "one reads", allowed(t, c, user("*"), "reader", "paper", "p"), false)
	relate(t, c, "paper", "p", "reader", user("*"))
	equal(t, "all read", allowed(t, c, user("*"), "reader", "paper", "p"), true)
	list := c.want(t, 200, "", "POST", resourcesPath, object{"subject": user("*"), "action": "reader", "type": "paper"})
	equal(t, "list", list.list(), []any{object{"external_id": "p", "type": "paper"}})
}
