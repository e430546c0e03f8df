package api_test

import (
	"fmt"
	"testing"
)

// deprecations uses deprecated types and relations in every request that warns of them.
func deprecations(t *testing.T, _ *world, c *client) {
	warned := func(a answer, want ...string) {
		t.Helper()
		equal(t, "warnings", append([]string{}, a.header.Values("Warning")...), append([]string{}, want...))
	}
	const (
		viewer = `299 - "document#viewer is deprecated: use \"reader\" (née leser) \\ instead"`
		paper  = `299 - "paper is deprecated: use document instead"`
		member = `299 - "team#member is deprecated: use group instead"`
	)
	direct := func(name string) object { return object{"name": name} }
	note := object{"deprecated": `use "reader" (née leser) \ instead`}
	document := object{"name": "document", "relations": []any{
		with(direct("viewer"), note), direct("reader"),
		object{"name": "commenter", "rewrites": []any{object{"kind": "this"}, object{"kind": "computed", "relation": "viewer"}}},
	}}
	types := []any{
		document,
		object{"name": "paper", "deprecated": "use document instead", "relations": []any{direct("reader")}},
		object{"name": "team", "relations": []any{object{"name": "member", "deprecated": "use group instead"}}},
	}
	warned(c.want(t, 200, "", "POST", applyPath, object{"types": types}))
	read := c.want(t, 200, "", "GET", "/api/v1/resource-types/document", nil).data()
	equal(t, "note", read["relations"].([]any)[0], object{"name": "viewer", "rewrites": []any{}, "deprecated": note["deprecated"]})
	equal(t, "note", c.want(t, 200, "", "GET", "/api/v1/resource-types/paper", nil).data()["deprecated"], "use document instead")

	doc, ann := resource("document", "d"), user("ann")
	members := object{"type": "team", "id": "t", "relation": "member"}
	relations, bulk := path("document", "d")+"/relations", "/api/v1/resources/relations/bulk"
	warned(c.want(t, 201, "", "POST", relations, relation(ann, "viewer")), viewer)
	warned(c.want(t, 200, "", "POST", relations, relation(ann, "viewer")), viewer)
	warned(c.want(t, 201, "", "POST", relations, relation(ann, "reader")))
	warned(c.want(t, 201, "", "POST", relations, relation(members, "reader")), member)
	warned(c.want(t, 204, "", "DELETE", relations, relation(ann, "viewer")))
	warned(c.want(t, 201, "", "POST", "/api/v1/resources", resource("paper", "p")), paper)
	warned(c.want(t, 200, "", "POST", "/api/v1/resources", resource("paper", "p")), paper)
	warned(c.want(t, 201, "", "POST", "/api/v1/resources", resource("document", "e")))
	operation := func(op string, r object, relation string, subject object) object {
		return object{"op": op, "resource": r, "relation": relation, "subject": subject}
	}
	warned(c.want(t, 200, "", "POST", bulk, object{"operations": []any{
		operation("create", doc, "viewer", ann), operation("create", doc, "viewer", user("bob")), operation("create", resource("paper", "p"), "reader", members),
	}}), viewer, paper, member)
	warned(c.want(t, 200, "", "POST", bulk, object{"operations": []any{operation("delete", doc, "viewer", user("bob"))}}))
	first := c.under(t, "once", "POST", relations, relation(user("cid"), "viewer"))
	again := c.under(t, "once", "POST", relations, relation(user("cid"), "viewer"))
	warned(first, viewer)
	warned(again, viewer)

	view := object{"subject": ann, "action": "view", "resource": doc}
	comment := object{"subject": ann, "action": "commenter", "resource": doc}
	warned(c.want(t, 200, "", "POST", checkPath, view), viewer)
	warned(c.want(t, 200, "", "POST", checkPath, with(view, object{"debug": true})), viewer)
	warned(c.want(t, 200, "", "POST", checkPath, comment)) // by viewer, which only the type names
	warned(c.want(t, 200, "", "POST", checkPath, with(comment, object{"subject": members})), member)
	contextual := object{"contextual_relations": []any{object{"resource": doc, "relation": "viewer", "subject": ann}}}
	warned(c.want(t, 200, "", "POST", checkPath, with(comment, contextual)), viewer)
	warned(c.want(t, 404, "resource_not_found", "POST", checkPath, with(view, object{"resource": resource("document", "none")})))
	warned(c.want(t, 200, "", "POST", "/api/v1/resources/check-batch", object{"checks": []any{comment, view, with(comment, object{"subject": members})}}), viewer, member)
	lists := object{"subject": ann, "action": "view", "type": "document"}
	for _, target := range []string{"list-resources", "list-resources/count", "list-resources/stream"} {
		warned(c.want(t, 200, "", "POST", "/api/v1/resources/"+target, lists), viewer)
	}
	queries := object{"subject": members, "queries": []any{object{"type": "paper", "action": "reader"}, object{"type": "document", "action": "reader"}}}
	warned(c.want(t, 200, "", "POST", "/api/v1/resources/list-resources", queries), member, paper)
	of := object{"resource": doc, "action": "view", "subject_type": "user"}
	for _, target := range []string{"list-subjects", "list-subjects/stream"} {
		warned(c.want(t, 200, "", "POST", "/api/v1/resources/"+target, of), viewer)
	}
	warned(c.want(t, 200, "", "POST", "/api/v1/resources/list-actions", object{"subject": ann, "resource": resource("paper", "p")}), paper)
	warned(c.want(t, 200, "", "POST", "/api/v1/resources/expand", object{"resource": doc, "action": "view"}), viewer)

	// Of many, some are enough.
	many := object{"name": "many"}
	var operations, named []any
	for i := range 7 {
		name := fmt.Sprint("r", i)
		named = append(named, object{"name": name, "deprecated": "it is old"})
		operations = append(operations, operation("create", resource("many", "m"), name, ann))
	}
	many["relations"] = named
	c.want(t, 201, "", "POST", "/api/v1/resource-types", many)
	equal(t, "warnings", len(c.want(t, 200, "", "POST", bulk, object{"operations": operations}).header.Values("Warning")), 5)

	for _, invalid := range []string{"a\r\nX-Injected: b", "a\u0085b", fmt.Sprintf("%0201d", 0)} {
		a := c.want(t, 400, "validation_failed", "POST", "/api/v1/resource-types", object{"name": "paper", "deprecated": invalid})
		equal(t, "fields", fields(a), []string{"deprecated"})
	}
}
