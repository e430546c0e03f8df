package api_test

import (
	"fmt"
	"slices"
	"testing"
)

// simulated are the names of questions, by their operations. Streams and counts have none.
var simulated = map[string]string{
	checkPath: "check", batchPath: "check_batch", resourcesPath: "list_resources",
	actionsPath: "list_actions", subjectsPath: "list_subjects", proofsPath: "list_proofs", expandPath: "expand",
}

func simulate(t *testing.T, _ *world, c *client) {
	define(t, c)
	relate(t, c, "document", "d", "viewer", user("bob"))
	token := relate(t, c, "document", "other", "viewer", user("bob")).meta("consistency_token")
	viewer := func(who string) object { return contextualRelation("document", "d", "viewer", user(who)) }
	assume := object{"relations": object{"add": []object{viewer("ann")}, "remove": []object{viewer("bob")}}}
	ask := func(assume object, name string, in object) answer {
		t.Helper()
		return c.want(t, 200, "", "POST", simulatePath, object{"assume": assume, name: in})
	}
	unassumed := object{}
	for target, name := range simulated {
		unassumed[name] = ask(object{}, name, askEverything()[target]).data()[name]
	}
	answers := object{}
	for target, name := range simulated {
		a := ask(assume, name, askEverything()[target])
		answers[name] = a.data()[name]
		equal(t, "token", a.meta("consistency_token"), token)
		before, decides := a.data()["before"]
		if equal(t, name+" has decisions", decides, name == "check" || name == "check_batch"); decides {
			equal(t, "before", before, []any{object{"allowed": false}})
		}
	}
	// Nothing has changed yet.
	for target, name := range simulated {
		equal(t, name+" without assumptions", dataOf(t, c.want(t, 200, "", "POST", target, askEverything()[target])), unassumed[name])
	}
	relate(t, c, "document", "d", "viewer", user("ann"))
	c.want(t, 204, "", "DELETE", path("document", "d")+"/relations", relation(user("bob"), "viewer"))
	for target, name := range simulated {
		equal(t, name+" after the changes", dataOf(t, c.want(t, 200, "", "POST", target, askEverything()[target])), answers[name])
	}

	// In the past.
	in := with(check(user("ann"), "view", resource("document", "d")), object{"at": token, "debug": true})
	a := ask(assume, "check", in)
	equal(t, "then", a.data()["check"].(map[string]any)["allowed"], true)
	equal(t, "reasons", len(a.data()["check"].(map[string]any)["reasons"].([]any)) > 0, true)
	equal(t, "without the assumption", a.data()["before"], []any{object{"allowed": false}})
	a = ask(object{}, "check", in)
	equal(t, "denied", a.data()["check"].(map[string]any)["denial"] != nil, true)

	// At another time, by other types, and of a resource that does not exist.
	until := viewer("cid")
	until["expires_at"] = "2090-01-01T00:00:00Z"
	for at, want := range map[string]bool{"2089-12-31T23:59:59Z": true, "2090-01-01T00:00:00Z": false} {
		a := ask(object{"relations": object{"add": []object{until}}, "instant": at}, "check", check(user("cid"), "view", resource("document", "d")))
		equal(t, at, a.data()["check"], object{"allowed": want})
	}
	paper := object{"types": []object{{"name": "paper", "relations": []object{{"name": "reader"}}}}}
	add := object{"add": []object{contextualRelation("paper", "p", "reader", user("ann"))}}
	a = ask(object{"resource_types": paper, "relations": add}, "check_batch", object{"checks": []object{
		{"subject": user("ann"), "action": "reader", "resource": resource("paper", "p")},
		{"subject": user("ann"), "action": "view", "resource": resource("document", "d")},
		{"subject": user("ann"), "action": "view", "resource": resource("document", "none")},
	}})
	equal(t, "after", a.data()["check_batch"], []any{object{"allowed": true}, object{"allowed": true}, object{"allowed": false, "error": "resource_not_found"}})
	equal(t, "before", a.data()["before"], []any{object{"allowed": false, "error": "resource_type_not_found"}, object{"allowed": true}, object{"allowed": false, "error": "resource_not_found"}})
	// Without the assumption, these questions are not valid.
	a = ask(object{"resource_types": paper, "relations": add}, "check", check(object{"type": "paper", "id": "p", "relation": "reader"}, "reader", resource("paper", "p")))
	equal(t, "of a new type", a.data(), object{"check": object{"allowed": true}})
	a = ask(object{"resource_types": paper}, "check", with(check(user("ann"), "view", resource("document", "d")), object{
		"contextual_relations": []object{contextualRelation("paper", "p", "reader", user("ann"))},
	}))
	equal(t, "in the context of a new type", a.data(), object{"check": object{"allowed": true}})
	c.want(t, 404, "resource_type_not_found", "GET", "/api/v1/resource-types/paper", nil)

	// Pages are of one state and one assumption.
	some := object{"relations": object{"add": []object{viewer("dan"), contextualRelation("document", "other", "viewer", user("dan"))}}}
	list := object{"subject": user("dan"), "action": "view", "type": "document", "limit": 1}
	first := ask(some, "list_resources", list)
	relate(t, c, "document", "another", "viewer", user("dan"))
	next := with(list, object{"cursor": first.meta("next_cursor")})
	second := ask(some, "list_resources", next)
	equal(t, "pages", slices.Concat(first.data()["list_resources"].([]any), second.data()["list_resources"].([]any)), []any{resource("document", "d"), resource("document", "other")})
	equal(t, "the end", []any{second.meta("next_cursor"), second.meta("limit")}, []any{nil, 1.0})
	c.want(t, 400, "cursor_invalid", "POST", simulatePath, object{"assume": object{}, "list_resources": next})
	c.want(t, 400, "cursor_invalid", "POST", resourcesPath, next)
}

func simulateRefused(t *testing.T, _ *world, c *client) {
	define(t, c)
	c.want(t, 201, "", "POST", "/api/v1/resource-types", conditionalType)
	made := relate(t, c, "document", "d", "viewer", user("ann"))
	question := check(user("ann"), "view", resource("document", "d"))
	relations := func(list string, items ...object) object { return object{"relations": object{list: items}} }
	viewer := contextualRelation("document", "d", "viewer", user("ann"))
	refuse := func(status int, code string, in object) answer {
		t.Helper()
		return c.want(t, status, code, "POST", simulatePath, in)
	}
	invalid := func(assume object, want ...string) {
		t.Helper()
		equal(t, "fields", fields(refuse(400, "validation_failed", object{"assume": assume, "check": question})), want)
	}
	equal(t, "fields", fields(refuse(400, "validation_failed", object{"check": question})), []string{"assume"})
	equal(t, "fields", fields(refuse(400, "validation_failed", object{"assume": object{}})), []string{"check"})
	equal(t, "fields", fields(refuse(400, "validation_failed", object{"assume": object{}, "check": question, "expand": object{}})), []string{"expand"})
	equal(t, "fields", fields(refuse(400, "validation_failed", object{"assume": object{}, "check": object{"at": "x", "consistency": "full"}})),
		[]string{"check/subject/type", "check/subject/id", "check/resource/type", "check/resource/external_id", "check/at", "check/action"})
	equal(t, "fields", fields(refuse(400, "validation_failed", object{"assume": object{}, "check": with(question, object{"at": "2990-01-01T00:00:00Z"})})), []string{"check/at"})
	invalid(object{"instant": "tomorrow"}, "assume/instant")
	invalid(object{"instant": "1960-01-01T00:00:00Z"}, "assume/instant")
	invalid(relations("add", contextualRelation("document", "", "viewer", user("ann"))), "assume/relations/add/0/resource/external_id")
	invalid(relations("add", with(viewer, object{"condition": condition("none", nil)})), "assume/relations/add/0/condition/name")
	invalid(relations("remove", contextualRelation("document", "d", "", user("ann"))), "assume/relations/remove/0/relation")
	types := func(types ...object) object { return object{"resource_types": object{"types": types}} }
	paper := object{"name": "paper"}
	invalid(types(paper, paper), "assume/resource_types/types/1/name")
	invalid(types(paper, object{"name": "!"}), "assume/resource_types/types/1/name")
	bad := refuse(400, "rewrite_invalid", object{"check": question, "assume": types(object{
		"name": "paper", "relations": []object{{"name": "reader", "rewrites": []object{{"kind": "computed", "relation": "none"}}}},
	})})
	equal(t, "path", bad.details()["path"], "assume/resource_types/types/0/relations/0/rewrites/0/relation")
	refuse(404, "resource_type_not_found", object{"assume": object{"resource_types": object{"delete": []string{"paper"}}}, "check": question})

	bob := contextualRelation("document", "d", "viewer", user("bob"))
	for code, assume := range map[string]object{
		"relation_not_found": relations("remove", viewer, bob),
		"relation_undefined": relations("add", viewer, contextualRelation("document", "d", "none", user("bob"))),
		"subject_invalid":    relations("add", viewer, contextualRelation("document", "d", "parent", user("bob"))),
	} {
		status, list := 400, "add"
		if code == "relation_not_found" {
			status, list = 404, "remove"
		}
		a := refuse(status, code, object{"assume": assume, "check": question})
		equal(t, code, []any{a.details()["index"], a.details()["path"]}, []any{1.0, "assume/relations/" + list + "/1"})
	}
	many := make([]object, 101)
	for i := range many {
		many[i] = contextualRelation("document", fmt.Sprint(i), "viewer", user("ann"))
	}
	for _, list := range []string{"add", "remove"} {
		equal(t, "max", refuse(400, "bulk_too_large", object{"assume": relations(list, many...), "check": question}).details()["max"], 100.0)
	}
	equal(t, "allowed", c.want(t, 200, "", "POST", simulatePath, object{"assume": relations("add", many[:100]...), "check": question}).data()["check"], object{"allowed": true})

	// Errors of the question are its own.
	lost := inAnotherEpoch(t, made.meta("consistency_token").(string))
	refuse(410, "history_expired", object{"assume": object{}, "check": with(question, object{"at": lost})})
	shelf := object{"name": "shelf", "relations": []object{{"name": "parent", "subjects": []string{"shelf"}}, {"name": "reader"}, {"name": "viewer", "rewrites": []object{{
		"kind": "exclusion", "base": object{"kind": "computed", "relation": "reader"}, "subtract": object{"kind": "tuple_to_userset", "tupleset": "parent", "computed": "viewer"},
	}}}}}
	refuse(400, "exclusion_cycle", object{
		"check": check(user("ann"), "viewer", resource("shelf", "loop")),
		"assume": with(types(shelf), relations("add", contextualRelation("shelf", "loop", "reader", user("ann")),
			contextualRelation("shelf", "loop", "parent", object{"type": "shelf", "id": "loop"}))),
	})
	refuse(404, "resource_not_found", object{"assume": object{}, "check": check(user("ann"), "view", resource("document", "none"))})
	near := with(contextualRelation("area", "a", "visitor", user("ann")), object{"condition": condition("nearby", object{"limit": 5})})
	visit := check(user("ann"), "visitor", resource("area", "a"))
	refuse(400, "condition_context_missing", object{"assume": relations("add", near), "check": visit})
	refuse(400, "condition_failed", object{"assume": relations("add", near), "check": with(visit, object{"context": object{"distance": "x"}})})
}
