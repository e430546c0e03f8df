package api_test

import (
	"net/http"
	"testing"
)

// evaluation is a request of AuthZEN.
func evaluation(subject object, action, typ, id string) object {
	return object{"subject": subject, "action": object{"name": action}, "resource": object{"type": typ, "id": id}}
}

func authZEN(t *testing.T, _ *world, c *client) {
	define(t, c)
	c.want(t, 201, "", "POST", "/api/v1/resource-types", conditionalType)
	relate(t, c, "document", "d", "viewer", user("ann"))
	c.want(t, 201, "", "POST", path("area", "a")+"/relations", with(relation(user("ann"), "visitor"), object{"condition": condition("nearby", object{"limit": 5})}))
	const one, many = "/access/v1/evaluation", "/access/v1/evaluations"

	ask := func(in object) map[string]any { return c.want(t, 200, "", "POST", one, in).body }
	equal(t, "allowed", ask(evaluation(user("ann"), "view", "document", "d")), object{"decision": true})
	equal(t, "denied", ask(evaluation(user("eve"), "view", "document", "d")), object{"decision": false})
	for code, in := range map[string]object{
		"resource_not_found":        evaluation(user("ann"), "view", "document", "none"),
		"resource_type_not_found":   evaluation(user("ann"), "view", "house", "d"),
		"relation_undefined":        evaluation(user("ann"), "sing", "document", "d"),
		"subject_invalid":           evaluation(object{"type": "house", "id": "x"}, "view", "document", "d"),
		"condition_context_missing": evaluation(user("ann"), "visitor", "area", "a"),
		"condition_failed":          with(evaluation(user("ann"), "visitor", "area", "a"), object{"context": object{"distance": "x"}}),
	} {
		answer := ask(in)
		equal(t, code, answer["decision"], false)
		equal(t, code, answer["context"].(map[string]any)["error"].(map[string]any)["code"], code)
	}
	near := with(evaluation(user("ann"), "visitor", "area", "a"), object{"context": object{"distance": 3}})
	equal(t, "with context", ask(near), object{"decision": true})
	c.want(t, 201, "", "POST", "/api/v1/resource-types", `{"name":"flat","relations":[{"name":"guest"}],"conditions":[
		{"name":"quiet","expression":"subject_noise < resource_limit && action_hour < 22","parameters":{"subject_noise":"int","resource_limit":"int","action_hour":"int"}}]}`)
	c.want(t, 201, "", "POST", path("flat", "f")+"/relations", with(relation(user("ann"), "guest"), object{"condition": condition("quiet", nil)}))
	properties := func(o object, p object) object { return with(o, object{"properties": p}) }
	equal(t, "with properties", ask(object{
		"subject": properties(user("ann"), object{"noise": 3}), "action": properties(object{"name": "guest"}, object{"hour": 20}),
		"resource": properties(object{"type": "flat", "id": "f"}, object{"limit": 5}), "context": object{"subject_noise": 4},
	}), object{"decision": true})

	a := c.want(t, 400, "validation_failed", "POST", one, `{}`)
	equal(t, "fields", fields(a), []string{"subject/type", "resource/type", "subject/id", "action/name", "resource/id"})

	// Many at once, with defaults.
	doc := func(id string) object { return object{"resource": object{"type": "document", "id": id}} }
	in := object{"subject": user("ann"), "action": object{"name": "view"}, "evaluations": []object{
		doc("d"), doc("none"), with(doc("d"), object{"subject": user("eve")}), doc("d"),
	}}
	decisions := func(semantic string) []any {
		var made []any
		answer := c.want(t, 200, "", "POST", many, with(in, object{"options": object{"evaluations_semantic": semantic}})).body
		for _, d := range answer["evaluations"].([]any) {
			made = append(made, d.(map[string]any)["decision"])
		}
		return made
	}
	equal(t, "all", decisions("execute_all"), []any{true, false, false, true})
	equal(t, "deny on first deny", decisions("deny_on_first_deny"), []any{true, false})
	equal(t, "permit on first permit", decisions("permit_on_first_permit"), []any{true})
	equal(t, "single", c.want(t, 200, "", "POST", many, evaluation(user("ann"), "view", "document", "d")).body, object{"decision": true})
	c.want(t, 400, "validation_failed", "POST", many, with(in, object{"options": object{"evaluations_semantic": "other"}}))
	a = c.want(t, 400, "validation_failed", "POST", many, object{"evaluations": []object{doc("d")}})
	equal(t, "fields", fields(a), []string{"evaluations/0/subject/type", "evaluations/0/subject/id", "evaluations/0/action/name"})
	c.want(t, 400, "bulk_too_large", "POST", many, object{"evaluations": make([]object, 1001)})

	// The response has the X-Request-Id of the request, if it is valid.
	for sent, want := range map[string]bool{"bfe9eb29-ab87-4ca3-be83-a1d5d8305716": true, "": false, "a b": false, long(256): false} {
		header := http.Header{"Content-Type": {"application/json"}, "X-Request-Id": {sent}, "Authorization": {"Bearer " + c.token}}
		res := c.raw(t, "POST", one, header, `{"subject":{"type":"user","id":"ann"},"action":{"name":"view"},"resource":{"type":"document","id":"d"}}`)
		if got := res.Get("X-Request-Id"); (got == sent) != want || got == "" {
			t.Errorf("sent %q, got %q", sent, got)
		}
	}

	metadata := c.with("").want(t, 200, "", "GET", "/.well-known/authzen-configuration", nil).body
	equal(t, "policy_decision_point", metadata["policy_decision_point"], c.base())
	equal(t, "access_evaluation_endpoint", metadata["access_evaluation_endpoint"], c.base()+"/access/v1/evaluation")
}

func authZENSearch(t *testing.T, _ *world, c *client) {
	define(t, c)
	c.want(t, 201, "", "POST", "/api/v1/resource-types", conditionalType)
	for _, id := range []string{"a", "b", "c"} {
		relate(t, c, "document", id, "viewer", user("ann"))
		relate(t, c, "document", "a", "viewer", user(id))
	}
	relate(t, c, "document", "a", "owner", user("ann"))
	relate(t, c, "document", "a", "banned", user("b"))
	const subjects, resources, actions = "/access/v1/search/subject", "/access/v1/search/resource", "/access/v1/search/action"
	find := func(target string, in object) (results []any, next string, context any) {
		t.Helper()
		a := c.want(t, 200, "", "POST", target, in)
		page := a.body["page"].(map[string]any)
		equal(t, "count", page["count"], float64(len(a.body["results"].([]any))))
		return a.body["results"].([]any), page["next_token"].(string), a.body["context"]
	}
	pages := func(target string, in object) (all []any) {
		t.Helper()
		for token := ""; ; {
			results, next, _ := find(target, with(in, object{"page": object{"token": token, "limit": 1}}))
			all = append(all, results...)
			if token = next; next == "" {
				return all
			}
		}
	}
	document := func(id string) object { return object{"type": "document", "id": id} }

	byResource := object{"subject": user("ann"), "action": object{"name": "view"}, "resource": object{"type": "document"}}
	equal(t, "resources", pages(resources, byResource), []any{document("a"), document("b"), document("c")})
	bySubject := object{"subject": object{"type": "user"}, "action": object{"name": "reader"}, "resource": document("a")}
	equal(t, "subjects", pages(subjects, bySubject), []any{user("a"), user("ann"), user("c")})
	byAction := object{"subject": user("ann"), "resource": document("a")}
	got, _, _ := find(actions, byAction)
	var names []string
	for _, item := range got {
		name := item.(map[string]any)["name"].(string)
		names = append(names, name)
		equal(t, name, c.want(t, 200, "", "POST", "/access/v1/evaluation", with(byAction, object{"action": object{"name": name}})).body["decision"], true)
	}
	equal(t, "actions", names, []string{"approver", "delete", "edit", "editor", "owner", "publish", "reader", "view", "viewer"})

	relate(t, c, "document", "a", "viewer", user("*"))
	all, _, everyone := find(subjects, bySubject)
	equal(t, "open", all, []any{user("a"), user("ann"), user("c")})
	equal(t, "everyone", everyone, object{"everyone": true, "except": []any{"b"}})

	c.want(t, 201, "", "POST", path("area", "a")+"/relations", with(relation(user("ann"), "visitor"), object{"condition": condition("nearby", object{"limit": 5})}))
	area := object{"type": "area", "id": "a"}
	for target, in := range map[string]object{
		subjects:  {"subject": object{"type": "user"}, "action": object{"name": "visitor"}, "resource": area},
		resources: {"subject": user("ann"), "action": object{"name": "visitor"}, "resource": area},
		actions:   {"subject": user("ann"), "resource": area},
	} {
		c.want(t, 400, "condition_context_missing", "POST", target, in)
		c.want(t, 400, "condition_failed", "POST", target, with(in, object{"context": object{"distance": "x"}}))
		find(target, with(in, object{"context": object{"distance": 3}}))
		c.want(t, 404, "resource_type_not_found", "POST", target, with(in, object{"resource": object{"type": "house", "id": "x"}}))
		c.want(t, 400, "subject_invalid", "POST", target, with(in, object{"subject": object{"type": "house", "id": "x"}}))
		c.want(t, 400, "validation_failed", "POST", target, `{}`)
		if target != resources {
			c.want(t, 404, "resource_not_found", "POST", target, with(in, object{"resource": object{"type": "area", "id": "none"}}))
		}
		if target != actions {
			c.want(t, 400, "relation_undefined", "POST", target, with(in, object{"action": object{"name": "sing"}}))
			c.want(t, 400, "cursor_invalid", "POST", target, with(in, object{"page": object{"token": "x"}}))
			c.want(t, 400, "validation_failed", "POST", target, with(in, object{"page": object{"limit": 251}}))
		}
	}
}
