package api_test

import "testing"

// singleValued has relations of which a resource may have one.
func singleValued(t *testing.T, w *world, c *client) {
	document := func(owner object) object {
		return object{"name": "document", "relations": []any{
			with(object{"name": "owner"}, owner),
			object{"name": "home", "cardinality": "one", "on_second": "replace"},
			object{"name": "viewer"},
		}}
	}
	many, one := document(object{"cardinality": "many"}), document(object{"cardinality": "one"})
	defined := c.want(t, 201, "", "POST", "/api/v1/resource-types", many).data()["relations"].([]any)
	equal(t, "many", defined[0], object{"name": "owner", "rewrites": []any{}})
	equal(t, "one", defined[1], object{"name": "home", "rewrites": []any{}, "cardinality": "one", "on_second": "replace"})

	// A relation cannot become single-valued while a resource has several.
	relate(t, c, "document", "d", "owner", user("ann"))
	relate(t, c, "document", "d", "owner", user("bob"))
	plan := c.want(t, 200, "", "POST", planPath, object{"types": []any{one}}).data()
	equal(t, "illegal", plan["illegal"], []any{object{
		"type": "document", "relation": "owner", "reason": "cardinality", "count": 2.0, "exact": true,
		"samples": []any{
			object{"resource": resource("document", "d"), "relation": "owner", "subject": user("ann")},
			object{"resource": resource("document", "d"), "relation": "owner", "subject": user("bob")},
		},
	}})
	for target, body := range map[string]any{applyPath: object{"types": []any{one}}, "/api/v1/resource-types": one} {
		a := c.want(t, 409, "resource_type_in_use", "POST", target, body)
		equal(t, "details", a.details(), object{"type": "document", "relation": "owner", "reason": "cardinality", "count": 2.0})
	}
	c.want(t, 204, "", "DELETE", path("document", "d")+"/relations", relation(user("bob"), "owner"))
	c.want(t, 200, "", "POST", applyPath, object{"types": []any{one}})

	// A second owner is refused, and named to those who may read relations.
	relations, bulk := path("document", "d")+"/relations", "/api/v1/resources/relations/bulk"
	a := c.want(t, 409, "relation_single_valued", "POST", relations, relation(user("bob"), "owner"))
	equal(t, "details", a.details(), object{"resource": resource("document", "d"), "relation": "owner", "subject": user("ann")})
	writer := c.with(w.token(t, c, w.application(t, c, "resources:write")))
	a = writer.want(t, 409, "relation_single_valued", "POST", relations, relation(user("bob"), "owner"))
	equal(t, "details", a.details(), object{"resource": resource("document", "d"), "relation": "owner"})
	operation := func(op, relation string, subject object) object {
		return object{"op": op, "resource": resource("document", "d"), "relation": relation, "subject": subject}
	}
	both := object{"operations": []any{operation("create", "viewer", user("bob")), operation("create", "owner", user("bob"))}}
	a = c.want(t, 409, "relation_single_valued", "POST", bulk, both)
	equal(t, "details", a.details(), object{"index": 1.0, "code": "relation_single_valued", "resource": resource("document", "d"), "relation": "owner", "subject": user("ann")})
	equal(t, "subject", writer.want(t, 409, "relation_single_valued", "POST", bulk, both).details()["subject"], nil)
	equal(t, "left", found(t, c, "resource_type", "document"), []string{"document:d#owner@user:ann"})
	c.want(t, 200, "", "POST", relations, relation(user("ann"), "owner"))
	c.want(t, 200, "", "POST", relations, with(relation(user("ann"), "owner"), object{"expires_at": "2126-01-02T03:04:05Z"}))
	c.want(t, 200, "", "POST", bulk, object{"operations": []any{operation("delete", "owner", user("ann")), operation("create", "owner", user("bob"))}})

	// A second home replaces the first, with an event of both.
	folder := func(id string) object { return object{"type": "document", "id": id} }
	c.want(t, 201, "", "POST", relations, relation(folder("a"), "home"))
	before := len(w.events(t, c, 0))
	c.want(t, 201, "", "POST", relations, relation(folder("b"), "home"))
	happened := w.events(t, c, before)
	home := func(op, result, id string) object {
		return object{"op": op, "result": result, "resource": resource("document", "d"), "relation": "home", "subject": folder(id)}
	}
	equal(t, "events", len(happened), 1)
	equal(t, "event", string(happened[0].Type), "relation.bulk_applied")
	equal(t, "data", parse(t, string(happened[0].Data)), object{"created": 1.0, "updated": 0.0, "deleted": 1.0, "operations": []any{home("delete", "deleted", "a"), home("create", "created", "b")}})
	written := c.want(t, 200, "", "POST", bulk, object{"operations": []any{operation("create", "home", folder("c")), operation("create", "home", folder("d")), operation("create", "home", folder("d"))}}).data()
	equal(t, "applied", written["applied"], 2.0)
	status := func(i float64, status string) object {
		return object{"index": i, "op": "create", "status": status}
	}
	equal(t, "results", written["results"], []any{status(0, "replaced"), status(1, "replaced"), status(2, "exists")})
	equal(t, "left", found(t, c, "resource_type", "document", "relation", "home"), []string{"document:d#home@document:d"})

	for _, invalid := range []object{{"cardinality": "two"}, {"on_second": "replace"}, {"cardinality": "one", "on_second": "keep"}} {
		c.want(t, 400, "validation_failed", "POST", "/api/v1/resource-types", document(invalid))
	}
}
