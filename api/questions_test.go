package api_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"stonetown/api"
	"stonetown/api/web"
	"stonetown/oauth/protocol"
	"stonetown/oauth/token"
)

const (
	checkPath     = "/api/v1/resources/check"
	batchPath     = "/api/v1/resources/check-batch"
	resourcesPath = "/api/v1/resources/list-resources"
	countPath     = "/api/v1/resources/list-resources/count"
	actionsPath   = "/api/v1/resources/list-actions"
	proofsPath    = "/api/v1/resources/list-proofs"
	subjectsPath  = "/api/v1/resources/list-subjects"
	expandPath    = "/api/v1/resources/expand"
	simulatePath  = "/api/v1/resources/simulate"
	historyPath   = "/api/v1/resources/check-history"
	watchPath     = "/api/v1/resources/watch"
)

// with is an object with more members.
func with(o object, more object) object {
	all := object{}
	for _, part := range []object{o, more} {
		for name, value := range part {
			all[name] = value
		}
	}
	return all
}

const conditionalType = `{"name": "area", "relations": [{"name": "visitor"}, {"name": "barred"}, {"name": "entrant", "rewrites": [
	{"kind": "exclusion", "base": {"kind": "computed", "relation": "visitor"}, "subtract": {"kind": "computed", "relation": "barred"}}]}],
	"conditions": [
		{"name": "nearby", "expression": "distance < limit", "parameters": {"distance": "int", "limit": "int"}},
		{"name": "inside", "expression": "ip.in_cidr(\"10.0.0.0/8\")", "parameters": {"ip": "ipaddress"}}
	]}`

func condition(name string, context object) object {
	if context == nil {
		return object{"name": name}
	}
	return object{"name": name, "context": context}
}

func conditions(t *testing.T, _ *world, c *client) {
	c.want(t, 201, "", "POST", "/api/v1/resource-types", conditionalType)
	got := c.want(t, 200, "", "GET", "/api/v1/resource-types/area", nil).data()["conditions"]
	equal(t, "conditions", got, parse(t, conditionalType).(map[string]any)["conditions"])

	target := path("area", "a") + "/relations"
	near := with(relation(user("ann"), "visitor"), object{"condition": condition("nearby", object{"limit": 5})})
	made := c.want(t, 201, "", "POST", target, near)
	equal(t, "condition", fmt.Sprint(made.data()["condition"]), fmt.Sprint(near["condition"]))
	c.want(t, 200, "", "POST", target, near)
	listed := c.want(t, 200, "", "GET", target, nil).list()[0].(map[string]any)
	equal(t, "condition, listed", fmt.Sprint(listed["condition"]), fmt.Sprint(near["condition"]))

	ask := func(context any) object {
		return with(check(user("ann"), "visitor", resource("area", "a")), object{"context": context})
	}
	equal(t, "near", c.want(t, 200, "", "POST", checkPath, ask(object{"distance": 3, "other": true})).data()["allowed"], true)
	equal(t, "far", c.want(t, 200, "", "POST", checkPath, ask(object{"distance": 7})).data()["allowed"], false)
	missing := c.want(t, 400, "condition_context_missing", "POST", checkPath, ask(nil))
	equal(t, "details", missing.details(), object{"conditions": []any{"nearby"}, "missing": []any{"distance"}})
	failed := c.want(t, 400, "condition_failed", "POST", checkPath, ask(object{"distance": "secret"}))
	equal(t, "details", failed.details(), object{"conditions": []any{"nearby"}, "missing": []any{}})
	for _, bad := range []any{"text", 5, []any{}} {
		equal(t, "fields", fields(c.want(t, 400, "validation_failed", "POST", checkPath, ask(bad))), []string{"context"})
	}
	explained := c.want(t, 200, "", "POST", checkPath, with(ask(object{"distance": 3}), object{"debug": true}))
	equal(t, "reasons", explained.data()["reasons"], []any{object{
		"via": "area:a#visitor@user:ann", "rewrite": "this",
		"text": "user:ann is visitor of area:a, since the condition nearby is met",
	}})

	// In a batch, only the items that depend on it have no answer.
	relate(t, c, "area", "b", "visitor", user("ann"))
	items := []object{{"action": "visitor", "resource": resource("area", "a")}, {"action": "visitor", "resource": resource("area", "b")}}
	batch := c.want(t, 200, "", "POST", batchPath, object{"subject": user("ann"), "checks": items})
	equal(t, "batch", batch.list(), []any{object{"allowed": false, "error": "condition_context_missing"}, object{"allowed": true}})
	batch = c.want(t, 200, "", "POST", batchPath, object{"subject": user("ann"), "checks": items, "context": object{"distance": []any{}}})
	equal(t, "batch", batch.list(), []any{object{"allowed": false, "error": "condition_failed"}, object{"allowed": true}})

	// What is wrong with terms is said, and loses nothing.
	for field, terms := range map[string]object{
		"condition/name":    {"condition": condition("unknown", nil)},
		"condition/context": {"condition": condition("nearby", object{"limit": "x"})},
		"expires_at":        {"expires_at": "tomorrow"},
	} {
		a := c.want(t, 400, "validation_failed", "POST", target, with(relation(user("bob"), "visitor"), terms))
		equal(t, "fields", fields(a), []string{field})
		in := with(op("create", "area", "a", "visitor", user("bob")), terms)
		c.want(t, 400, "validation_failed", "POST", "/api/v1/resources/relations/bulk", object{"operations": []object{in}})
	}
	equal(t, "relations", len(c.want(t, 200, "", "GET", target, nil).list()), 1)

	// A condition in use keeps its name and parameters; its expression may change.
	a := c.want(t, 409, "resource_type_in_use", "POST", "/api/v1/resource-types", `{"name":"area","relations":[{"name":"visitor"},{"name":"barred"},{"name":"entrant"}]}`)
	equal(t, "details", a.details(), object{"type": "area", "relation": "", "condition": "nearby", "count": 1.0})
	c.want(t, 200, "", "POST", "/api/v1/resource-types", `{"name":"area","relations":[{"name":"visitor"},{"name":"barred"}],"conditions":[
		{"name":"nearby","expression":"distance > limit","parameters":{"limit":"int","distance":"int"}}]}`)
	equal(t, "far", c.want(t, 200, "", "POST", checkPath, ask(object{"distance": 7})).data()["allowed"], true)

	for expression, field := range map[string]string{
		"distance <": "conditions/0/expression", "1 + 1": "conditions/0/expression", "elsewhere": "conditions/0/expression", "": "conditions/0/expression",
	} {
		a := c.want(t, 400, "validation_failed", "POST", "/api/v1/resource-types", object{
			"name": "zone", "conditions": []object{{"name": "x", "expression": expression, "parameters": object{"distance": "int"}}},
		})
		equal(t, "fields of "+expression, fields(a), []string{field})
	}
}

func expiry(t *testing.T, _ *world, c *client) {
	define(t, c)
	target := path("document", "d") + "/relations"
	until := func(at time.Time) object {
		return with(relation(user("ann"), "viewer"), object{"expires_at": at.UTC().Format("2006-01-02T15:04:05.000Z")})
	}
	soon := time.Now().Add(time.Second)
	made := c.want(t, 201, "", "POST", target, until(soon))
	equal(t, "expires_at", made.data()["expires_at"], until(soon)["expires_at"])
	equal(t, "before", allowed(t, c, user("ann"), "view", "document", "d"), true)
	token := c.want(t, 200, "", "POST", checkPath, check(user("ann"), "view", resource("document", "d"))).meta("consistency_token")
	time.Sleep(time.Until(soon) + time.Millisecond)
	equal(t, "after", allowed(t, c, user("ann"), "view", "document", "d"), false)
	for _, freshness := range []object{{"consistency": "minimize_latency"}, {"consistency_token": token}} {
		a := c.want(t, 200, "", "POST", checkPath, with(check(user("ann"), "view", resource("document", "d")), freshness))
		equal(t, "after, with less consistency", a.data()["allowed"], false)
	}
	list := c.want(t, 200, "", "POST", resourcesPath, object{"subject": user("ann"), "action": "view", "type": "document", "consistency_token": token})
	equal(t, "list", list.list(), []any{})

	bulk := c.want(t, 200, "", "POST", "/api/v1/resources/relations/bulk", object{"operations": []object{
		with(op("create", "document", "d", "viewer", user("ann")), object{"expires_at": "2901-01-01T00:00:00Z"}),
	}})
	equal(t, "status", bulk.data()["results"].([]any)[0].(map[string]any)["status"], "updated")
	equal(t, "renewed", allowed(t, c, user("ann"), "view", "document", "d"), true)
	c.want(t, 204, "", "DELETE", target, relation(user("ann"), "viewer"))
	equal(t, "deleted", allowed(t, c, user("ann"), "view", "document", "d"), false)
}

func contextualRelation(typ, id, name string, subject object) object {
	return object{"resource": resource(typ, id), "relation": name, "subject": subject}
}

func contextual(t *testing.T, _ *world, c *client) {
	define(t, c)
	relate(t, c, "folder", "f", "viewer", user("ann"))
	c.want(t, 201, "", "POST", "/api/v1/resources", resource("document", "d"))
	ask := func(relations any) object {
		return with(check(user("ann"), "view", resource("document", "d")), object{"contextual_relations": relations})
	}
	link := contextualRelation("document", "d", "parent", object{"type": "folder", "id": "f"})
	equal(t, "with", c.want(t, 200, "", "POST", checkPath, ask([]object{link})).data()["allowed"], true)
	equal(t, "without", allowed(t, c, user("ann"), "view", "document", "d"), false)
	batch := c.want(t, 200, "", "POST", batchPath, object{
		"subject": user("ann"), "contextual_relations": []object{link},
		"checks": []object{{"action": "view", "resource": resource("document", "d")}},
	})
	equal(t, "batch", batch.list(), []any{object{"allowed": true}})

	hundred := make([]object, 101)
	for i := range hundred {
		hundred[i] = contextualRelation("document", fmt.Sprint(i), "viewer", user("ann"))
	}
	c.want(t, 200, "", "POST", checkPath, ask(hundred[:100]))
	for target, in := range askEverything() {
		bring := func(r object) object { return with(in, object{"contextual_relations": []object{r}}) }
		a := c.want(t, 400, "bulk_too_large", "POST", target, with(in, object{"contextual_relations": hundred}))
		equal(t, "max", a.details()["max"], 100.0)
		a = c.want(t, 400, "relation_undefined", "POST", target, bring(contextualRelation("document", "d", "none", user("ann"))))
		equal(t, "index", a.details()["index"], 0.0)
		c.want(t, 400, "subject_invalid", "POST", target, bring(contextualRelation("document", "d", "parent", user("ann"))))
		a = c.want(t, 400, "validation_failed", "POST", target, bring(contextualRelation("document", "", "parent", user("ann"))))
		equal(t, "fields", fields(a), []string{"contextual_relations/0/resource/external_id"})
		c.want(t, 404, "resource_type_not_found", "POST", target, bring(contextualRelation("house", "d", "parent", user("ann"))))
	}
}

// exclusionCycles asks about shelves whose viewers are their readers without the viewers
// of their parents, where one shelf is its own parent.
func exclusionCycles(t *testing.T, _ *world, c *client) {
	viewerWithout := func(name, subtract string) string {
		return `{"name":"` + name + `","relations":[{"name":"parent","subjects":["shelf"]},{"name":"reader"},{"name":"viewer","rewrites":[
			{"kind":"exclusion","base":{"kind":"computed","relation":"reader"},"subtract":` + subtract + `}]}]}`
	}
	refused := c.want(t, 400, "rewrite_invalid", "POST", "/api/v1/resource-types", viewerWithout("shelf", `{"kind":"computed","relation":"viewer"}`))
	equal(t, "reason", refused.details()["reason"], "recursion_through_exclusion")
	c.want(t, 201, "", "POST", "/api/v1/resource-types", viewerWithout("shelf", `{"kind":"tuple_to_userset","tupleset":"parent","computed":"viewer"}`))
	shelf := func(id string) object { return object{"type": "shelf", "id": id} }
	for _, id := range []string{"below", "free", "loop"} {
		relate(t, c, "shelf", id, "reader", user("ann"))
	}
	relate(t, c, "shelf", "below", "parent", shelf("free"))
	ask := check(user("ann"), "viewer", resource("shelf", "below"))
	equal(t, "below a viewer", c.want(t, 200, "", "POST", checkPath, ask).data()["allowed"], false)

	// A write that closes a cycle is accepted. Only questions that depend on it fail.
	relate(t, c, "shelf", "loop", "parent", shelf("loop"))
	equal(t, "beside the cycle", c.want(t, 200, "", "POST", checkPath, ask).data()["allowed"], false)
	relate(t, c, "shelf", "mixed", "reader", user("ann"))
	relate(t, c, "shelf", "mixed", "parent", shelf("loop"))
	a := c.want(t, 400, "exclusion_cycle", "POST", checkPath, check(user("ann"), "viewer", resource("shelf", "mixed")))
	equal(t, "details", a.details(), object{"type": "shelf", "external_id": "loop", "relation": "viewer"})
	equal(t, "batch", c.want(t, 200, "", "POST", batchPath, object{"subject": user("ann"), "checks": []object{
		{"action": "viewer", "resource": resource("shelf", "mixed")}, {"action": "viewer", "resource": resource("shelf", "free")},
	}}).list(), []any{object{"allowed": false, "error": "exclusion_cycle"}, object{"allowed": true}})
	c.want(t, 200, "", "POST", expandPath, object{"resource": resource("shelf", "mixed"), "action": "viewer"})

	listed := object{"subject": user("ann"), "action": "viewer", "type": "shelf"}
	subjects := object{"resource": resource("shelf", "mixed"), "action": "viewer", "subject_type": "user"}
	for target, in := range map[string]object{
		resourcesPath: listed, resourcesPath + "/stream": listed, countPath: listed,
		actionsPath:  {"subject": user("ann"), "resource": resource("shelf", "mixed")},
		proofsPath:   check(user("ann"), "viewer", resource("shelf", "mixed")),
		subjectsPath: subjects, subjectsPath + "/stream": subjects,
		"/access/v1/search/resource": {"subject": user("ann"), "action": object{"name": "viewer"}, "resource": object{"type": "shelf"}},
		"/access/v1/search/subject":  {"subject": object{"type": "user"}, "action": object{"name": "viewer"}, "resource": shelf("mixed")},
		"/access/v1/search/action":   {"subject": user("ann"), "resource": shelf("mixed")},
	} {
		c.want(t, 400, "exclusion_cycle", "POST", target, in)
	}
	answer := c.want(t, 200, "", "POST", "/access/v1/evaluation", evaluation(user("ann"), "viewer", "shelf", "mixed")).body
	equal(t, "decision", answer["decision"], false)
	equal(t, "reason", answer["context"].(map[string]any)["error"].(map[string]any)["code"], "exclusion_cycle")

	c.want(t, 204, "", "DELETE", path("shelf", "loop"), nil)
	equal(t, "mended", c.want(t, 200, "", "POST", resourcesPath, listed).list(), []any{resource("shelf", "free"), resource("shelf", "mixed")})
}

func listResources(t *testing.T, _ *world, c *client) {
	define(t, c)
	c.want(t, 201, "", "POST", "/api/v1/resource-types", conditionalType)
	var want []any
	for i := range 7 {
		id := fmt.Sprintf("d%d/é", i)
		if i < 5 {
			relate(t, c, "document", id, "parent", object{"type": "folder", "id": "f"})
			want = append(want, resource("document", id))
		} else {
			relate(t, c, "document", id, "viewer", user("bob"))
		}
	}
	relate(t, c, "folder", "f", "viewer", object{"type": "group", "id": "staff"})
	relate(t, c, "group", "staff", "member", user("ann"))

	in := object{"subject": user("ann"), "action": "view", "type": "document"}
	whole := c.want(t, 200, "", "POST", resourcesPath, in)
	equal(t, "list", whole.list(), want)
	equal(t, "next_cursor", whole.meta("next_cursor"), nil)
	equal(t, "limit", whole.meta("limit"), 50.0)

	// Pages show one state, also with writes in between.
	first := c.want(t, 200, "", "POST", resourcesPath, with(in, object{"limit": 2}))
	got := first.list()
	c.want(t, 204, "", "DELETE", path("folder", "f"), nil)
	for page := first; page.meta("next_cursor") != nil; {
		page = c.want(t, 200, "", "POST", resourcesPath, with(in, object{"limit": 2, "cursor": page.meta("next_cursor")}))
		equal(t, "token", page.meta("consistency_token"), first.meta("consistency_token"))
		got = append(got, page.list()...)
	}
	equal(t, "pages", got, want)
	equal(t, "afterwards", c.want(t, 200, "", "POST", resourcesPath, in).list(), []any{})
	equal(t, "bob", len(c.want(t, 200, "", "POST", resourcesPath, with(in, object{"subject": user("bob")})).list()), 2)

	// A cursor belongs to its question and its tenant.
	cursor := first.meta("next_cursor")
	for name, value := range map[string]any{
		"subject": user("eve"), "action": "edit", "type": "folder", "context": object{"a": 1}, "consistency": "minimize_latency",
		"contextual_relations": []object{contextualRelation("document", "x", "viewer", user("ann"))},
	} {
		c.want(t, 400, "cursor_invalid", "POST", resourcesPath, with(in, object{"limit": 2, "cursor": cursor, name: value}))
	}
	c.want(t, 400, "cursor_invalid", "POST", resourcesPath, with(in, object{"cursor": "x"}))

	stream := c.want(t, 200, "", "POST", resourcesPath+"/stream", with(in, object{"subject": user("bob")}))
	equal(t, "Content-Type", stream.header.Get("Content-Type"), "application/x-ndjson")
	lines := stream.lines(t)
	equal(t, "lines", len(lines), 3)
	equal(t, "first line", lines[0], resource("document", "d5/é"))
	equal(t, "last line", lines[2]["meta"].(map[string]any)["count"], 2.0)

	for _, target := range []string{resourcesPath, resourcesPath + "/stream"} {
		c.want(t, 404, "resource_type_not_found", "POST", target, with(in, object{"type": "house"}))
		c.want(t, 400, "relation_undefined", "POST", target, with(in, object{"action": "sing"}))
		c.want(t, 400, "subject_invalid", "POST", target, with(in, object{"subject": object{"type": "house", "id": "x"}}))
		equal(t, "fields", fields(c.want(t, 400, "validation_failed", "POST", target, `{}`)), []string{"subject/type", "subject/id", "type", "action"})
	}
	for _, limit := range []int{0, 251} {
		c.want(t, 400, "validation_failed", "POST", resourcesPath, with(in, object{"limit": limit}))
	}

	// Where it is undecided what belongs to the list, there is no list.
	c.want(t, 201, "", "POST", path("area", "a")+"/relations", with(relation(user("ann"), "visitor"), object{"condition": condition("nearby", object{"limit": 5})}))
	areas := object{"subject": user("ann"), "action": "visitor", "type": "area"}
	for _, target := range []string{resourcesPath, resourcesPath + "/stream"} {
		c.want(t, 400, "condition_context_missing", "POST", target, areas)
		c.want(t, 400, "condition_failed", "POST", target, with(areas, object{"context": object{"distance": "x"}}))
		c.want(t, 200, "", "POST", target, with(areas, object{"context": object{"distance": 3}}))
	}
	equal(t, "far", c.want(t, 200, "", "POST", resourcesPath, with(areas, object{"context": object{"distance": 9}})).list(), []any{})
}

// denials asks why checks are denied, makes the changes, and is allowed.
func denials(t *testing.T, _ *world, c *client) {
	define(t, c)
	c.want(t, 201, "", "POST", "/api/v1/resource-types", conditionalType)
	ask := func(in object) map[string]any {
		t.Helper()
		data := c.want(t, 200, "", "POST", checkPath, with(in, object{"debug": true})).data()
		equal(t, "allowed", data["allowed"], false)
		denial, _ := data["denial"].(map[string]any)
		equal(t, "truncated", denial["truncated"], false)
		return denial
	}
	way := func(relations ...object) object {
		var list []any
		for _, r := range relations {
			list = append(list, r)
		}
		return object{"relations": list}
	}
	missing := func(typ, id, name string, subject object, more object) object {
		return with(contextualRelation(typ, id, name, subject), with(object{"state": "absent"}, more))
	}
	ways := func(list ...any) []any { return list }

	relate(t, c, "document", "d", "parent", object{"type": "folder", "id": "f"})
	relate(t, c, "folder", "f", "viewer", object{"type": "group", "id": "staff"})
	approve := check(user("ann"), "approver", resource("document", "d"))
	equal(t, "ways", ask(approve)["ways"], ways(way(missing("document", "d", "owner", user("ann"), nil))))
	view := check(user("ann"), "view", resource("document", "d"))
	equal(t, "ways", ask(view)["ways"], ways(
		way(missing("document", "d", "editor", user("ann"), nil)), way(missing("document", "d", "owner", user("ann"), nil)),
		way(missing("document", "d", "viewer", user("ann"), nil)), way(missing("folder", "f", "owner", user("ann"), nil)),
		way(missing("folder", "f", "viewer", user("ann"), nil)), way(missing("group", "staff", "member", user("ann"), nil)),
	))
	relate(t, c, "group", "staff", "member", user("ann"))
	data := c.want(t, 200, "", "POST", checkPath, with(view, object{"debug": true})).data()
	equal(t, "allowed", data["allowed"], true)
	equal(t, "denial of an allowed check", data["denial"], nil)
	relate(t, c, "document", "d", "banned", user("ann"))
	equal(t, "excluded", ask(with(view, object{"action": "reader"}))["ways"], ways(object{"exclusions": []any{object{
		"resource": resource("document", "d"), "relation": "reader",
		"reasons": []any{object{"via": "document:d#banned@user:ann", "rewrite": "this", "text": "user:ann is banned of document:d"}},
	}}}))
	plain := c.want(t, 200, "", "POST", checkPath, with(view, object{"action": "reader"})).data()
	equal(t, "without debug", plain, object{"allowed": false})

	// A condition has its name and values, and an expired relation its expiry.
	near := with(relation(user("ann"), "visitor"), object{"condition": condition("nearby", object{"limit": 5})})
	c.want(t, 201, "", "POST", path("area", "a")+"/relations", near)
	far := with(check(user("ann"), "visitor", resource("area", "a")), object{"context": object{"distance": 7, "ip": "192.0.2.1"}})
	unmet := missing("area", "a", "visitor", user("ann"), object{
		"state": "condition_unmet", "condition": condition("nearby", object{"distance": 7.0, "limit": 5.0}),
	})
	equal(t, "unmet", ask(far)["ways"], ways(way(unmet)))
	instant := "2001-02-03T04:05:06.000Z"
	expired := with(contextualRelation("area", "a", "visitor", user("bob")), object{"expires_at": instant})
	ended := ask(with(check(user("bob"), "visitor", resource("area", "a")), object{"contextual_relations": []object{expired}}))
	equal(t, "expired", ended["ways"], ways(way(missing("area", "a", "visitor", user("bob"), object{"state": "expired", "expires_at": instant}))))

	// What cannot be decided or does not exist is an error, with debug as without.
	c.want(t, 400, "condition_context_missing", "POST", checkPath, with(check(user("ann"), "visitor", resource("area", "a")), object{"debug": true}))
	c.want(t, 404, "resource_not_found", "POST", checkPath, with(check(user("ann"), "view", resource("document", "none")), object{"debug": true}))
	// Nothing can be proposed for a subject that no relation may name.
	equal(t, "none", ask(check(user("ann"), "parent", resource("document", "d")))["ways"], []any{})
}

// batchOfSeveral asks about subjects of the checks, with and without one of the request.
func batchOfSeveral(t *testing.T, _ *world, c *client) {
	define(t, c)
	relate(t, c, "folder", "f", "viewer", object{"type": "group", "id": "staff"})
	relate(t, c, "group", "staff", "member", user("ann"))
	relate(t, c, "document", "d", "parent", object{"type": "folder", "id": "f"})
	relate(t, c, "document", "d", "viewer", user("bob"))
	item := object{"action": "view", "resource": resource("document", "d")}
	of := func(subject object) object { return with(item, object{"subject": subject}) }
	no, yes := object{"allowed": false}, object{"allowed": true}
	checks := []object{of(user("ann")), item, of(user("cid")), of(object{"type": "group", "id": "staff"}), of(object{"type": "house", "id": "x"}), of(user("ann"))}
	a := c.want(t, 200, "", "POST", batchPath, object{"subject": user("bob"), "checks": checks})
	equal(t, "answers", a.list(), []any{yes, yes, no, yes, with(no, object{"error": "subject_invalid"}), yes})

	// Without a subject of the request, each check needs its own.
	a = c.want(t, 200, "", "POST", batchPath, object{"checks": []object{of(user("ann")), of(user("cid"))}})
	equal(t, "answers", a.list(), []any{yes, no})
	a = c.want(t, 400, "validation_failed", "POST", batchPath, object{"checks": checks})
	equal(t, "fields", fields(a), []string{"subject/type", "subject/id"})
	a = c.want(t, 400, "validation_failed", "POST", batchPath, object{"subject": user("bob"), "checks": []object{item, of(object{"type": "user", "id": ""})}})
	equal(t, "fields", fields(a), []string{"checks/1/subject/id"})
	// A subject of the request that is not needed must be valid all the same.
	c.want(t, 400, "subject_invalid", "POST", batchPath, object{"subject": object{"type": "house", "id": "x"}, "checks": []object{of(user("ann"))}})

	many := make([]object, 1000)
	for i := range many {
		many[i] = of(user([]string{"ann", "cid", fmt.Sprint(i)}[i%3]))
	}
	answers := c.want(t, 200, "", "POST", batchPath, object{"checks": many}).list()
	for i, answer := range answers {
		equal(t, fmt.Sprint("check ", i), answer, any(object{"allowed": i%3 == 0}))
	}
	c.want(t, 400, "bulk_too_large", "POST", batchPath, object{"checks": append(many, many[0])})
}

// listByQueries lists resources of several types and actions.
func listByQueries(t *testing.T, _ *world, c *client) {
	define(t, c)
	query := func(typ, action string) object { return object{"type": typ, "action": action} }
	relate(t, c, "folder", "f", "viewer", user("ann"))
	for i := range 4 {
		relate(t, c, "document", fmt.Sprint("d", i), []string{"viewer", "owner"}[i%2], user("ann"))
	}
	in := object{"subject": user("ann"), "queries": []object{query("folder", "view"), query("document", "owner"), query("document", "view"), query("folder", "owner")}}
	listed := func(typ, id string, actions ...any) object {
		return with(resource(typ, id), object{"actions": actions})
	}
	want := []any{
		listed("document", "d0", "view"), listed("document", "d1", "owner", "view"), listed("document", "d2", "view"),
		listed("document", "d3", "owner", "view"), listed("folder", "f", "view"),
	}
	equal(t, "list", c.want(t, 200, "", "POST", resourcesPath, in).list(), want)
	first := c.want(t, 200, "", "POST", resourcesPath, with(in, object{"limit": 2}))
	got := first.list()
	c.want(t, 204, "", "DELETE", path("folder", "f"), nil)
	for page := first; page.meta("next_cursor") != nil; {
		page = c.want(t, 200, "", "POST", resourcesPath, with(in, object{"limit": 2, "cursor": page.meta("next_cursor")}))
		equal(t, "token", page.meta("consistency_token"), first.meta("consistency_token"))
		got = append(got, page.list()...)
	}
	equal(t, "pages", got, want)
	lines := c.want(t, 200, "", "POST", resourcesPath+"/stream", in).lines(t)
	equal(t, "lines", fmt.Sprint(lines[:len(lines)-1]), fmt.Sprint(want[:4]))
	equal(t, "count", c.want(t, 200, "", "POST", countPath, in).data(), object{"count": 4.0, "exact": true})

	twenty := make([]object, 21)
	for i := range twenty {
		twenty[i] = query("document", fmt.Sprint("a", i))
	}
	for _, target := range []string{resourcesPath, resourcesPath + "/stream", countPath} {
		a := c.want(t, 400, "bulk_too_large", "POST", target, with(in, object{"queries": twenty}))
		equal(t, "max", a.details()["max"], 20.0)
		c.want(t, 400, "relation_undefined", "POST", target, with(in, object{"queries": twenty[:20]}))
		c.want(t, 404, "resource_type_not_found", "POST", target, with(in, object{"queries": []object{query("house", "view")}}))
		for name, bad := range map[string]object{
			"queries":        {"type": "document"},
			"queries/1":      {"queries": []object{query("document", "view"), query("document", "view")}},
			"queries/0/type": {"queries": []object{query("", "view")}},
		} {
			equal(t, "fields", fields(c.want(t, 400, "validation_failed", "POST", target, with(in, bad))), []string{name})
		}
		equal(t, "fields", fields(c.want(t, 400, "validation_failed", "POST", target, with(in, object{"queries": []object{}}))), []string{"queries"})
	}
}

// listSome restricts lists to some ids.
func listSome(t *testing.T, _ *world, c *client) {
	define(t, c)
	for _, id := range []string{"a1", "a2", "b1"} {
		relate(t, c, "document", id, "viewer", user("ann"))
	}
	relate(t, c, "document", "a3", "viewer", user("bob"))
	in := object{"subject": user("ann"), "action": "view", "type": "document"}
	ids := with(in, object{"ids": []string{"b1", "a3", "none", "b1", "a1"}})
	found := func(ids ...string) []any {
		var list []any
		for _, id := range ids {
			list = append(list, resource("document", id))
		}
		return list
	}
	equal(t, "prefix", c.want(t, 200, "", "POST", resourcesPath, with(in, object{"id_prefix": "a"})).list(), found("a1", "a2"))
	equal(t, "ids", c.want(t, 200, "", "POST", resourcesPath, ids).list(), found("a1", "b1"))
	equal(t, "both", c.want(t, 200, "", "POST", resourcesPath, with(ids, object{"id_prefix": "b"})).list(), found("b1"))
	first := c.want(t, 200, "", "POST", resourcesPath, with(ids, object{"limit": 1}))
	second := c.want(t, 200, "", "POST", resourcesPath, with(ids, object{"limit": 1, "cursor": first.meta("next_cursor")}))
	equal(t, "pages", append(first.list(), second.list()...), found("a1", "b1"))
	c.want(t, 400, "cursor_invalid", "POST", resourcesPath, with(in, object{"limit": 1, "cursor": first.meta("next_cursor")}))
	equal(t, "count", c.want(t, 200, "", "POST", countPath, ids).data(), object{"count": 2.0, "exact": true})
	equal(t, "lines", len(c.want(t, 200, "", "POST", resourcesPath+"/stream", ids).lines(t)), 3)

	relate(t, c, "document", "open", "viewer", user("*"))
	relate(t, c, "document", "open", "banned", user("bob"))
	relate(t, c, "document", "open", "viewer", user("ann"))
	subjects := object{"resource": resource("document", "open"), "action": "reader", "subject_type": "user"}
	equal(t, "subjects", c.want(t, 200, "", "POST", subjectsPath, with(subjects, object{"ids": []string{"cid", "bob", "ann"}})).list(), []any{user("ann"), user("cid")})
	equal(t, "wildcard", c.want(t, 200, "", "POST", subjectsPath, with(subjects, object{"ids": []string{"cid", "*"}})).list(), []any{user("*"), user("cid")})
	excluded := with(user("bob"), object{"excluded": true})
	equal(t, "prefix", c.want(t, 200, "", "POST", subjectsPath, with(subjects, object{"id_prefix": "b"})).list(), []any{user("*"), excluded})
	page := c.want(t, 200, "", "POST", subjectsPath, with(subjects, object{"ids": []string{"cid", "*", "ann"}, "limit": 1}))
	got := page.list()
	for page.meta("next_cursor") != nil {
		page = c.want(t, 200, "", "POST", subjectsPath, with(subjects, object{"ids": []string{"cid", "*", "ann"}, "limit": 1, "cursor": page.meta("next_cursor")}))
		got = append(got, page.list()...)
	}
	equal(t, "pages", got, []any{user("*"), user("ann"), user("cid")})
	equal(t, "lines", len(c.want(t, 200, "", "POST", subjectsPath+"/stream", with(subjects, object{"ids": []string{"bob"}})).lines(t)), 1)
	c.want(t, 404, "resource_not_found", "POST", subjectsPath, with(subjects, object{"resource": resource("document", "none"), "ids": []string{"ann"}}))

	thousand := make([]string, 1001)
	for i := range thousand {
		thousand[i] = fmt.Sprint(i)
	}
	for target, in := range map[string]object{
		resourcesPath: in, resourcesPath + "/stream": in, countPath: in, subjectsPath: subjects, subjectsPath + "/stream": subjects,
	} {
		c.want(t, 200, "", "POST", target, with(in, object{"ids": thousand[:1000]}))
		equal(t, "max", c.want(t, 400, "bulk_too_large", "POST", target, with(in, object{"ids": thousand})).details()["max"], 1000.0)
		for name, bad := range map[string]object{
			"ids": {"ids": []string{}}, "ids/1": {"ids": []string{"a", ""}}, "ids/0": {"ids": []string{strings.Repeat("x", 513)}},
			"id_prefix": {"id_prefix": strings.Repeat("x", 513)},
		} {
			equal(t, "fields", fields(c.want(t, 400, "validation_failed", "POST", target, with(in, bad))), []string{name})
		}
	}
}

func countResources(t *testing.T, _ *world, c *client) {
	define(t, c)
	for i := range 3 {
		relate(t, c, "document", fmt.Sprint("d", i), "viewer", user("ann"))
	}
	in := object{"subject": user("ann"), "action": "view", "type": "document"}
	for limit, want := range map[any]object{
		nil: {"count": 3.0, "exact": true}, 10000: {"count": 3.0, "exact": true}, 3: {"count": 3.0, "exact": true}, 2: {"count": 2.0, "exact": false},
	} {
		ask := in
		if limit != nil {
			ask = with(in, object{"limit": limit})
		}
		equal(t, fmt.Sprint("count up to ", limit), c.want(t, 200, "", "POST", countPath, ask).data(), want)
	}
	equal(t, "none", c.want(t, 200, "", "POST", countPath, with(in, object{"subject": user("bob")})).data(), object{"count": 0.0, "exact": true})
	for _, limit := range []int{0, 10001} {
		equal(t, "fields", fields(c.want(t, 400, "validation_failed", "POST", countPath, with(in, object{"limit": limit}))), []string{"limit"})
	}
	c.want(t, 400, "subject_invalid", "POST", countPath, with(in, object{"subject": object{"type": "house", "id": "x"}}))
	c.want(t, 201, "", "POST", "/api/v1/resource-types", conditionalType)
	c.want(t, 201, "", "POST", path("area", "a")+"/relations", with(relation(user("ann"), "visitor"), object{"condition": condition("nearby", object{"limit": 5})}))
	areas := object{"subject": user("ann"), "action": "visitor", "type": "area"}
	c.want(t, 400, "condition_context_missing", "POST", countPath, areas)
	c.want(t, 400, "condition_failed", "POST", countPath, with(areas, object{"context": object{"distance": "x"}}))
}

func listActions(t *testing.T, _ *world, c *client) {
	c.want(t, 201, "", "POST", "/api/v1/resource-types", object{"name": "paper", "actions": object{"publish": "owner", "view": "owner"}, "relations": []object{
		{"name": "owner"}, {"name": "viewer"}, {"name": "delete"},
	}})
	for _, name := range []string{"owner", "viewer", "delete"} {
		relate(t, c, "paper", name, name, user("ann"))
	}
	actions := func(id string) any {
		return c.want(t, 200, "", "POST", actionsPath, object{"subject": user("ann"), "resource": resource("paper", id)}).data()["actions"]
	}
	// Own actions, then conventions, then relations; view is an action of the type's own.
	equal(t, "owner", actions("owner"), []any{"delete", "owner", "publish", "view"}) // the convention: delete is owner
	equal(t, "viewer", actions("viewer"), []any{"viewer"})
	equal(t, "delete", actions("delete"), []any{}) // not the relation of that name
	for _, action := range []string{"delete", "owner", "publish", "view", "viewer"} {
		listed := slices.Contains(actions("owner").([]any), any(action))
		equal(t, action, allowed(t, c, user("ann"), action, "paper", "owner"), listed)
	}
	in := object{"subject": user("ann"), "resource": resource("paper", "owner")}
	equal(t, "contextual", c.want(t, 200, "", "POST", actionsPath, with(in, object{
		"subject": user("bob"), "contextual_relations": []object{contextualRelation("paper", "owner", "viewer", user("bob"))},
	})).data()["actions"], []any{"viewer"})
	c.want(t, 404, "resource_not_found", "POST", actionsPath, with(in, object{"resource": resource("paper", "none")}))
	c.want(t, 404, "resource_type_not_found", "POST", actionsPath, with(in, object{"resource": resource("house", "none")}))
	c.want(t, 400, "subject_invalid", "POST", actionsPath, with(in, object{"subject": object{"type": "house", "id": "x"}}))
	equal(t, "fields", fields(c.want(t, 400, "validation_failed", "POST", actionsPath, `{}`)), []string{"subject/type", "subject/id", "resource/type", "resource/external_id"})
	c.want(t, 201, "", "POST", "/api/v1/resource-types", conditionalType)
	c.want(t, 201, "", "POST", path("area", "a")+"/relations", with(relation(user("ann"), "visitor"), object{"condition": condition("nearby", object{"limit": 5})}))
	area := object{"subject": user("ann"), "resource": resource("area", "a")}
	c.want(t, 400, "condition_context_missing", "POST", actionsPath, area)
	c.want(t, 400, "condition_failed", "POST", actionsPath, with(area, object{"context": object{"distance": "x"}}))
	equal(t, "near", c.want(t, 200, "", "POST", actionsPath, with(area, object{"context": object{"distance": 3}})).data()["actions"], []any{"entrant", "visitor"})
}

func listProofs(t *testing.T, _ *world, c *client) {
	c.want(t, 201, "", "POST", "/api/v1/resource-types", object{"name": "plan", "relations": []object{
		{"name": "owner"}, {"name": "viewer", "rewrites": []object{{"kind": "this"}, {"kind": "computed", "relation": "owner"}}},
	}})
	relate(t, c, "plan", "p", "owner", user("ann"))
	relate(t, c, "plan", "p", "viewer", object{"type": "group", "id": "staff"})
	relate(t, c, "group", "staff", "member", user("ann"))
	until := with(relation(user("ann"), "viewer"), object{"expires_at": "2100-01-01T00:00:00Z"})
	c.want(t, 201, "", "POST", path("plan", "p")+"/relations", until)

	in := with(check(user("ann"), "view", resource("plan", "p")), object{"limit": 1})
	all := c.want(t, 200, "", "POST", proofsPath, with(in, object{"limit": 50}))
	equal(t, "limit", all.meta("limit"), 50.0)
	equal(t, "end", all.meta("next_cursor"), nil)
	vias := func(a answer) (list [][]any) {
		for _, p := range a.list() {
			var steps []any
			for _, r := range p.(map[string]any)["reasons"].([]any) {
				steps = append(steps, r.(map[string]any)["via"])
			}
			list = append(list, steps)
		}
		return list
	}
	equal(t, "proofs", vias(all), [][]any{
		{"plan:p#viewer@user:ann"}, {"plan:p#viewer@group:staff#member", "group:staff#member@user:ann"}, {"plan:p#owner", "plan:p#owner@user:ann"},
	})
	equal(t, "expiry", all.list()[0].(map[string]any)["expires_at"], "2100-01-01T00:00:00.000Z")
	equal(t, "no expiry", all.list()[1].(map[string]any)["expires_at"], nil)

	// Pages are of one state.
	first := c.want(t, 200, "", "POST", proofsPath, in)
	c.want(t, 200, "", "POST", "/api/v1/resources/relations/bulk", object{"operations": []object{op("delete", "plan", "p", "owner", user("ann"))}})
	found, next := vias(first), first
	for next.meta("next_cursor") != nil {
		next = c.want(t, 200, "", "POST", proofsPath, with(in, object{"cursor": next.meta("next_cursor")}))
		equal(t, "token", next.meta("consistency_token"), first.meta("consistency_token"))
		found = append(found, vias(next)...)
	}
	equal(t, "pages", found, vias(all))
	equal(t, "now", len(c.want(t, 200, "", "POST", proofsPath, with(in, object{"limit": 50})).list()), 2)
	equal(t, "denied", c.want(t, 200, "", "POST", proofsPath, with(in, object{"subject": user("bob")})).list(), []any{})

	c.want(t, 400, "cursor_invalid", "POST", proofsPath, with(in, object{"cursor": first.meta("next_cursor"), "action": "owner"}))
	c.want(t, 400, "validation_failed", "POST", proofsPath, with(in, object{"limit": 251}))
	c.want(t, 404, "resource_not_found", "POST", proofsPath, with(in, object{"resource": resource("plan", "none")}))
	c.want(t, 404, "resource_type_not_found", "POST", proofsPath, with(in, object{"resource": resource("house", "none")}))
	c.want(t, 400, "subject_invalid", "POST", proofsPath, with(in, object{"subject": object{"type": "house", "id": "x"}}))
	c.want(t, 201, "", "POST", "/api/v1/resource-types", conditionalType)
	c.want(t, 201, "", "POST", path("area", "a")+"/relations", with(relation(user("ann"), "visitor"), object{"condition": condition("nearby", object{"limit": 5})}))
	area := check(user("ann"), "visitor", resource("area", "a"))
	c.want(t, 400, "condition_context_missing", "POST", proofsPath, area)
	c.want(t, 400, "condition_failed", "POST", proofsPath, with(area, object{"context": object{"distance": "x"}}))
	equal(t, "near", len(c.want(t, 200, "", "POST", proofsPath, with(area, object{"context": object{"distance": 3}})).list()), 1)
}

func listSubjects(t *testing.T, _ *world, c *client) {
	define(t, c)
	c.want(t, 201, "", "POST", "/api/v1/resource-types", conditionalType)
	relate(t, c, "folder", "f", "viewer", object{"type": "group", "id": "staff"})
	for _, id := range []string{"ann", "bob", "cid"} {
		relate(t, c, "group", "staff", "member", user(id))
	}
	relate(t, c, "document", "d", "parent", object{"type": "folder", "id": "f"})
	relate(t, c, "document", "d", "owner", user("olga"))
	relate(t, c, "document", "d", "banned", user("bob"))
	in := object{"resource": resource("document", "d"), "action": "reader", "subject_type": "user"}
	equal(t, "readers", c.want(t, 200, "", "POST", subjectsPath, in).list(), []any{user("ann"), user("cid"), user("olga")})
	equal(t, "groups", c.want(t, 200, "", "POST", subjectsPath, with(in, object{"subject_type": "group"})).list(), []any{object{"type": "group", "id": "staff"}})
	usersets := c.want(t, 200, "", "POST", subjectsPath, with(in, object{"subject_type": "folder", "subject_relation": "viewer"})).list()
	equal(t, "usersets", usersets, []any{object{"type": "folder", "id": "f", "relation": "viewer"}})

	relate(t, c, "document", "d", "viewer", user("*"))
	open := c.want(t, 200, "", "POST", subjectsPath, in)
	want := []any{user("*"), user("ann"), with(user("bob"), object{"excluded": true}), user("cid"), user("olga")}
	equal(t, "open to everyone but one", open.list(), want)
	lines := c.want(t, 200, "", "POST", subjectsPath+"/stream", in).lines(t)
	equal(t, "lines", len(lines), 6)
	equal(t, "last line", lines[5]["meta"].(map[string]any)["count"], 5.0)

	first := c.want(t, 200, "", "POST", subjectsPath, with(in, object{"limit": 1}))
	got := first.list()
	c.want(t, 204, "", "DELETE", path("document", "d")+"/relations", relation(user("bob"), "banned"))
	for page := first; page.meta("next_cursor") != nil; {
		page = c.want(t, 200, "", "POST", subjectsPath, with(in, object{"limit": 1, "cursor": page.meta("next_cursor")}))
		got = append(got, page.list()...)
	}
	equal(t, "pages", got, want)
	c.want(t, 400, "cursor_invalid", "POST", subjectsPath, with(in, object{"action": "view", "cursor": first.meta("next_cursor")}))

	for _, target := range []string{subjectsPath, subjectsPath + "/stream"} {
		c.want(t, 404, "resource_type_not_found", "POST", target, with(in, object{"resource": resource("house", "d")}))
		c.want(t, 404, "resource_not_found", "POST", target, with(in, object{"resource": resource("document", "none")}))
		c.want(t, 400, "relation_undefined", "POST", target, with(in, object{"action": "sing"}))
		c.want(t, 400, "subject_invalid", "POST", target, with(in, object{"subject_type": "house"}))
		c.want(t, 400, "validation_failed", "POST", target, `{}`)
	}
	c.want(t, 400, "validation_failed", "POST", subjectsPath, with(in, object{"limit": 0}))

	c.want(t, 201, "", "POST", path("area", "a")+"/relations", with(relation(user("ann"), "visitor"), object{"condition": condition("nearby", object{"limit": 5})}))
	visitors := object{"resource": resource("area", "a"), "action": "visitor", "subject_type": "user"}
	for _, target := range []string{subjectsPath, subjectsPath + "/stream"} {
		c.want(t, 400, "condition_context_missing", "POST", target, visitors)
		c.want(t, 400, "condition_failed", "POST", target, with(visitors, object{"context": object{"distance": "x"}}))
	}
	near := c.want(t, 200, "", "POST", subjectsPath, with(visitors, object{"context": object{"distance": 3}}))
	equal(t, "visitors", near.list(), []any{user("ann")})
}

func expand(t *testing.T, _ *world, c *client) {
	define(t, c)
	relate(t, c, "folder", "f", "viewer", object{"type": "group", "id": "staff"})
	relate(t, c, "group", "staff", "member", user("ann"))
	relate(t, c, "document", "d", "parent", object{"type": "folder", "id": "f"})
	relate(t, c, "document", "d", "owner", user("olga"))
	in := object{"resource": resource("document", "d"), "action": "editor"}
	tree := c.want(t, 200, "", "POST", expandPath, in).data()
	node := func(kind, typ, id, relation string, more object) object {
		return with(object{"kind": kind, "resource": resource(typ, id), "relation": relation}, more)
	}
	subjects := func(list ...object) object {
		var entries []any
		for _, s := range list {
			entries = append(entries, object{"subject": s})
		}
		return object{"subjects": entries}
	}
	equal(t, "tree", tree, node("union", "document", "d", "editor", object{"children": []any{
		node("this", "document", "d", "editor", nil),
		node("computed", "document", "d", "editor", object{"children": []any{
			node("this", "document", "d", "owner", subjects(user("olga"))),
		}}),
	}}))

	links := func(a answer) any {
		viewer := a.data()["children"].([]any)[2].(map[string]any) // parent's viewers
		equal(t, "tupleset", viewer["tupleset"], "parent")
		return viewer["children"].([]any)[0]
	}
	in["action"] = "view"
	equal(t, "no further", links(c.want(t, 200, "", "POST", expandPath, with(in, object{"depth": 0}))),
		node("union", "folder", "f", "viewer", object{"cut": "depth"}))
	deep := links(c.want(t, 200, "", "POST", expandPath, with(in, object{"depth": 2}))).(map[string]any)
	staff := object{"type": "group", "id": "staff"}
	equal(t, "the group", deep["children"].([]any)[0], node("this", "folder", "f", "viewer", with(subjects(staff), object{"children": []any{
		node("this", "group", "staff", "member", subjects(user("ann"))),
	}})))

	// In pages, of one state.
	for _, id := range []string{"bob", "cid", "dan"} {
		relate(t, c, "group", "staff", "member", user(id))
	}
	group := object{"resource": resource("group", "staff"), "action": "member", "limit": 2}
	page := c.want(t, 200, "", "POST", expandPath, group).data()
	equal(t, "first", page["subjects"], subjects(user("ann"), user("bob"))["subjects"])
	relate(t, c, "group", "staff", "member", user("zoe"))
	next := with(group, object{"cursor": page["next_cursor"]})
	equal(t, "second", c.want(t, 200, "", "POST", expandPath, next).data(), node("this", "group", "staff", "member", subjects(user("cid"), user("dan"))))
	folder := c.want(t, 200, "", "POST", expandPath, object{"resource": resource("folder", "f"), "action": "viewer", "limit": 1}).data()
	cut := folder["children"].([]any)[0].(map[string]any)["children"].([]any)[0].(map[string]any)
	equal(t, "cut", cut["cut"], "limit")
	members := c.want(t, 200, "", "POST", expandPath, object{
		"resource": resource("folder", "f"), "action": "viewer", "limit": 10, "cursor": cut["next_cursor"],
	}).data()
	equal(t, "members", len(members["subjects"].([]any)), 5)
	c.want(t, 400, "cursor_invalid", "POST", expandPath, with(next, object{"depth": 3}))
	equal(t, "fields", fields(c.want(t, 400, "validation_failed", "POST", expandPath, with(group, object{"limit": 1001}))), []string{"limit"})
	equal(t, "fields", fields(c.want(t, 400, "validation_failed", "POST", expandPath, with(in, object{"cursor": page["next_cursor"]}))), []string{"limit"})

	c.want(t, 404, "resource_not_found", "POST", expandPath, with(in, object{"resource": resource("document", "none")}))
	c.want(t, 404, "resource_type_not_found", "POST", expandPath, with(in, object{"resource": resource("house", "d")}))
	c.want(t, 400, "relation_undefined", "POST", expandPath, with(in, object{"action": "sing"}))
	for _, depth := range []int{-1, 51} {
		equal(t, "fields", fields(c.want(t, 400, "validation_failed", "POST", expandPath, with(in, object{"depth": depth}))), []string{"depth"})
	}
}

// watching is a watch under way.
type watching struct {
	t      *testing.T
	lines  *bufio.Scanner
	answer answer
	cancel context.CancelFunc
}

func (c *client) watch(t *testing.T, after any) *watching {
	t.Helper()
	query := url.Values{}
	if after != nil {
		query.Set("after", after.(string))
	}
	return c.watchWith(t, query)
}

func (c *client) watchWith(t *testing.T, query url.Values) *watching {
	t.Helper()
	target := watchPath
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, "GET", c.server.URL+target, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = c.host
	req.Header.Set("Authorization", "Bearer "+c.token)
	transport := new(http.Transport)
	res, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	w := &watching{t: t, lines: bufio.NewScanner(res.Body), answer: answer{status: res.StatusCode, header: res.Header}}
	w.cancel = func() {
		cancel()
		res.Body.Close()
		transport.CloseIdleConnections()
		document().judge(t, req, nil, w.answer)
	}
	return w
}

// next waits for the next event.
func (w *watching) next() map[string]any {
	w.t.Helper()
	if !w.lines.Scan() {
		w.t.Fatalf("the watch ended: %v", w.lines.Err())
	}
	w.answer.text += w.lines.Text() + "\n"
	return parse(w.t, w.lines.Text()).(map[string]any)
}

func watch(t *testing.T, _ *world, c *client) {
	w := c.watch(t, nil)
	start := w.next()
	equal(t, "buffering by nginx", w.answer.header.Get("X-Accel-Buffering"), "no")
	equal(t, "first event", start["event"], "heartbeat")
	define(t, c)
	for range 2 {
		equal(t, "types", w.next()["schema_changed"], true)
	}
	made := relate(t, c, "document", "d", "viewer", user("ann"))
	change := w.next()
	equal(t, "token", change["consistency_token"], made.meta("consistency_token"))
	equal(t, "changes", change["changes"], []any{
		object{"op": "create", "resource": resource("document", "d"), "relation": "viewer", "subject": user("ann")},
		object{"op": "create", "resource": resource("document", "d")},
	})
	w.cancel()

	// It goes on where it ended.
	c.want(t, 204, "", "DELETE", path("document", "d"), nil)
	w = c.watch(t, change["consistency_token"])
	defer w.cancel()
	equal(t, "where it begins", w.next()["consistency_token"], change["consistency_token"])
	deleted := w.next()["changes"].([]any)
	equal(t, "deleted", deleted[0].(map[string]any)["op"], "delete")
	equal(t, "how many", len(deleted), 2)

	renames := []any{object{"from": "document", "to": "paper"}, object{"type": "document", "from": "viewer", "to": "seer"}}
	c.want(t, 200, "", "POST", applyPath, object{"renames": renames})
	renamed := w.next()
	equal(t, "renamed", renamed["renamed"], any(renames))
	equal(t, "changes", renamed["changes"], nil)
	relate(t, c, "paper", "d", "seer", user("ann"))
	equal(t, "with the new names", w.next()["changes"].([]any)[0], any(object{
		"op": "create", "resource": resource("paper", "d"), "relation": "seer", "subject": user("ann"),
	}))

	c.want(t, 400, "validation_failed", "GET", watchPath+"?after=nonsense", nil)
	parts, err := base64.RawURLEncoding.DecodeString(change["consistency_token"].(string))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Split(string(parts), "|")
	fields[2] = "another"
	elsewhere := base64.RawURLEncoding.EncodeToString([]byte(strings.Join(fields, "|")))
	c.want(t, 410, "history_expired", "GET", watchPath+"?after="+elsewhere, nil)
}

// watchDecisions follows who may read documents.
func watchDecisions(t *testing.T, _ *world, c *client) {
	define(t, c)
	about := url.Values{"type": {"document"}, "action": {"reader"}, "subject_type": {"user"}}
	w := c.watchWith(t, about)
	defer w.cancel()
	equal(t, "first event", w.next()["event"], "heartbeat")
	d, everyone := resource("document", "d"), user("*")
	next := func(what string, token any, lists object) (event map[string]any) {
		t.Helper()
		event = w.next()
		equal(t, what, event["event"], "decisions")
		equal(t, what, event["consistency_token"], token)
		for _, list := range []string{"gained", "lost", "conditional", "undecidable"} {
			equal(t, what+": "+list, event[list], lists[list])
		}
		return event
	}
	relate(t, c, "folder", "f", "viewer", user("bob")) // of no document
	made := relate(t, c, "document", "d", "viewer", user("ann")).meta("consistency_token")
	first := next("viewer", made, object{"gained": []any{object{"resource": d, "subject": user("ann"), "before": "denied"}}})
	banned := relate(t, c, "document", "d", "banned", user("ann")).meta("consistency_token")
	next("banned", banned, object{"lost": []any{object{"resource": d, "subject": user("ann"), "before": "allowed"}}})
	public := relate(t, c, "document", "d", "viewer", everyone).meta("consistency_token")
	next("public", public, object{"gained": []any{object{"resource": d, "subject": everyone, "before": "denied", "except": []any{user("ann")}}}})
	c.want(t, 204, "", "DELETE", path("document", "d")+"/relations", relation(user("ann"), "banned"))
	equal(t, "no longer banned", w.next()["gained"], []any{object{"resource": d, "subject": user("ann"), "before": "denied"}})
	c.want(t, 204, "", "DELETE", path("document", "d"), nil)
	equal(t, "deleted", w.next()["lost"], []any{object{"resource": d, "subject": everyone, "before": "allowed"}})

	// Too many to be named.
	for n := range 3 {
		var ops []object
		for i := range 400 {
			ops = append(ops, object{"op": "create", "resource": resource("folder", "f"), "relation": "viewer", "subject": user(fmt.Sprintf("u%d-%d", n, i))})
		}
		c.want(t, 200, "", "POST", "/api/v1/resources/relations/bulk", object{"operations": ops})
	}
	relate(t, c, "document", "e", "parent", object{"type": "folder", "id": "f"})
	many := w.next()
	equal(t, "too many", many["event"], "scope")
	equal(t, "reason", many["reason"], "too_many")
	equal(t, "resources", many["resources"], []any{resource("document", "e")})
	equal(t, "subjects", many["subjects"], nil)

	// Types on which the action does not depend change nothing.
	c.want(t, 201, "", "POST", "/api/v1/resource-types", `{"name": "other", "relations": [{"name": "viewer"}]}`)
	document := strings.Replace(split(t, documents)[1], `"subtract": {"kind": "computed", "relation": "banned"}`, `"subtract": {"kind": "computed", "relation": "owner"}`, 1)
	c.want(t, 200, "", "POST", applyPath, object{"types": []any{parse(t, document)}})
	types := w.next()
	equal(t, "types", types["event"], "scope")
	equal(t, "reason", types["reason"], "resource_types")

	// It goes on from the token of any event.
	about.Set("after", first["consistency_token"].(string))
	again := c.watchWith(t, about)
	defer again.cancel()
	equal(t, "where it begins", again.next()["consistency_token"], first["consistency_token"])
	equal(t, "banned", again.next()["consistency_token"], banned)

	c.want(t, 400, "validation_failed", "GET", watchPath+"?type=document", nil)
	c.want(t, 400, "relation_undefined", "GET", watchPath+"?type=document&action=fly&subject_type=user", nil)
	c.want(t, 400, "subject_invalid", "GET", watchPath+"?type=document&action=view&subject_type=robot", nil)
	c.want(t, 404, "resource_type_not_found", "GET", watchPath+"?type=robot&action=view&subject_type=user", nil)
}

// otherEpoch sends a consistency token from before a restored backup. Checks report it as
// ignored and answer for the newest state.
func otherEpoch(t *testing.T, _ *world, c *client) {
	define(t, c)
	made := relate(t, c, "document", "d", "viewer", user("ann"))
	token := made.meta("consistency_token").(string)
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Split(string(text), "|")
	fields[2] = "another"
	lost := base64.RawURLEncoding.EncodeToString([]byte(strings.Join(fields, "|")))
	question := check(user("ann"), "view", resource("document", "d"))
	questions := object{"subject": user("ann"), "checks": []object{{"action": "view", "resource": resource("document", "d")}}}
	for given, want := range map[string]any{token: nil, lost: true} {
		a := c.want(t, 200, "", "POST", checkPath, with(question, object{"consistency_token": given}))
		equal(t, "allowed", a.data()["allowed"], true)
		equal(t, "ignored by a check", a.meta("consistency_token_ignored"), want)
		a = c.want(t, 200, "", "POST", batchPath, with(questions, object{"consistency_token": given}))
		equal(t, "ignored by a batch", a.meta("consistency_token_ignored"), want)
		equal(t, "the token to go on from", a.meta("consistency_token"), token)
	}
}

// expiring shortens the lifetime of all tokens.
type expiring struct {
	web.Verifier
	in time.Duration
}

func (e expiring) Verify(ctx context.Context, t protocol.Tenant, bearer string) (*token.Principal, error) {
	p, err := e.Verifier.Verify(ctx, t, bearer)
	if err == nil {
		short := *p
		short.ExpiresAt = time.Now().Add(e.in)
		p = &short
	}
	return p, err
}

// TestStreamsEnd keeps a watch open beyond the limits of connections and requests. It ends with
// its token and with the server.
func TestStreamsEnd(t *testing.T) {
	w := newWorld(t, databases["SQLite"](t), nil)
	c := w.tenant(t, "streams")
	const limit = 500 * time.Millisecond
	serve := func(change func(*api.Config)) *client {
		handler := httptestServer(t, w, func(config *api.Config) {
			config.Timeout = limit
			change(config)
		}).Config.Handler
		server := httptest.NewUnstartedServer(handler)
		server.Config.ReadTimeout, server.Config.WriteTimeout = limit, limit
		server.Start()
		t.Cleanup(server.Close)
		return &client{server: server, host: c.host, token: c.token}
	}
	ends := func(watching *watching) {
		t.Helper()
		for watching.lines.Scan() {
			watching.answer.text += watching.lines.Text() + "\n"
		}
		if err := watching.lines.Err(); err != nil {
			t.Errorf("it broke off: %v", err)
		}
		watching.cancel()
	}

	stopping, stop := context.WithCancel(t.Context())
	long := serve(func(config *api.Config) { config.Stopping = stopping }).watch(t, nil)
	long.next()
	time.Sleep(3 * limit)
	define(t, c)
	equal(t, "after all limits", long.next()["schema_changed"], true)
	stop()
	ends(long)
	ends(serve(func(config *api.Config) { config.Verifier = expiring{config.Verifier, 2 * limit} }).watch(t, nil))
}
