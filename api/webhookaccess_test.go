package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"stonetown/oauth/scope"
)

// isRelated reports whether the document accepts any token for an operation, as the alternative
// to one with a scope.
func isRelated(op *openapi3.Operation) bool {
	if op.Security == nil {
		return false
	}
	for _, requirement := range *op.Security {
		if scopes, ok := requirement["bearer"]; ok && len(scopes) == 0 {
			return true
		}
	}
	return false
}

// relatedCallers lets callers without scopes manage the subscriptions that they own, read those
// that they view, and learn nothing about others.
func relatedCallers(t *testing.T, w *world, c *client) {
	w.ahead.Store(0)
	r := newReceiver(t, http.StatusInternalServerError)
	ann, ben := member(t, c, "ann@example.com"), member(t, c, "ben@example.com")
	staff := group(t, c, "staff")
	c.want(t, 201, "", "POST", groupsPath+"/"+staff+"/members", object{"user_id": ben})
	machine := w.application(t, c, "resources:read")
	owner, viewer := c.with(w.token(t, c, machine)), signedIn(t, c, "ben@example.com")
	id, _ := subscribe(t, c, r.URL, object{
		"owners":  []any{object{"type": "application", "id": machine.id}, user(ann)},
		"viewers": []any{object{"type": "group", "id": staff}},
	}, "scope.*")
	strange, _ := subscribe(t, c, r.URL, nil, "scope.*")
	at := subscriptionsPath + "/" + id
	entries := deadLetters(t, c, id, 3)
	foreign := deadLetters(t, c, strange, 1)
	deliveries := c.want(t, 200, "", "GET", at+"/deliveries", nil).list()
	foreignDelivery := c.want(t, 200, "", "GET", subscriptionsPath+"/"+strange+"/deliveries", nil).list()[0].(object)["id"].(string)
	targets := func(subscription, delivery, entry string) func(string) string {
		return strings.NewReplacer("{subscription_id}", subscription, "{delivery_id}", delivery, "{entry_id}", entry).Replace
	}
	own := targets(id, deliveries[0].(object)["id"].(string), entries[0])
	others := targets(strange, foreignDelivery, foreign[0])
	absent := targets("whs_x", "whd_x", "dle_x")
	operations := relatedOperations(t)

	// Owners and viewers read.
	for _, by := range []*client{owner, viewer, signedIn(t, c, "ann@example.com")} {
		list := by.want(t, 200, "", "GET", subscriptionsPath, nil).list()
		equal(t, "list", []any{len(list), list[0].(object)["id"]}, []any{1, id})
		for _, o := range operations {
			if o.method == "GET" {
				by.want(t, 200, "", "GET", own(o.path), nil)
			}
		}
	}

	// Nobody else learns whether a subscription exists.
	refused := func(what string, by *client, fill func(string) string, method string) {
		t.Helper()
		for _, o := range operations {
			if method != "" && o.method == method || !strings.Contains(o.path, "{") {
				continue
			}
			required := "webhooks:write"
			if o.method == "GET" {
				required = "webhooks:read"
			}
			a := by.want(t, 403, "insufficient_scope", o.method, fill(o.path), o.body())
			equal(t, what, []any{a.details()["required_scope"], a.body["message"]}, []any{required, "the access token lacks the scope " + required})
			if !strings.Contains(strings.Join(a.header["Www-Authenticate"], ","), `error="insufficient_scope", scope="`+required+`"`) {
				t.Errorf("%s: %v", what, a.header["Www-Authenticate"])
			}
		}
	}
	member(t, c, "eve@example.com")
	party := newParty(t, c, object{"allowed_scopes": []any{"openid", "me:read"}})
	party.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	onBehalf := c.with(party.exchange(t, party.code(t, url.Values{"scope": {"openid me:read"}}), nil).body["access_token"].(string))
	onBehalf.want(t, 403, "insufficient_scope", "GET", subscriptionsPath, nil)
	refused("a token that an application has of an owner", onBehalf, own, "")
	refused("another user", signedIn(t, c, "eve@example.com"), own, "")
	refused("another application", c.with(w.token(t, c, w.application(t, c, slices.DeleteFunc(slices.Clone(scope.Builtin), func(s string) bool { return strings.HasPrefix(s, "webhooks:") })...))), own, "")
	refused("an owner of another", owner, others, "")
	refused("an absent one", owner, absent, "")
	for _, strange := range []string{"whs_x", "%00", "%FF", "*", long(600), url.PathEscape("a#b@c:d")} {
		refused("an absent one", viewer, targets(strange, strange, strange), "")
	}
	refused("a viewer who writes", viewer, own, "GET")
	equal(t, "a list of none", signedIn(t, c, "eve@example.com").want(t, 200, "", "GET", subscriptionsPath, nil).list(), []any{})
	owner.want(t, 403, "insufficient_scope", "POST", subscriptionsPath, object{"name": "n", "url": r.URL, "events": []any{"*"}})
	owner.want(t, 403, "insufficient_scope", "GET", webhooksPath+"/event-types", nil)
	writer := c.with(w.token(t, c, w.application(t, c, "webhooks:write")))
	writer.want(t, 403, "insufficient_scope", "GET", at+"/deliveries", nil)
	reader := c.with(w.token(t, c, w.application(t, c, "webhooks:read")))
	reader.want(t, 200, "", "GET", at+"/deliveries", nil)
	refused("a reader who writes", reader, own, "GET")

	// For another tenant, they do not exist.
	elsewhere := w.tenant(t, "webhooks-elsewhere")
	for _, o := range operations {
		if !strings.Contains(o.path, "{") {
			equal(t, "list elsewhere", elsewhere.want(t, 200, "", o.method, o.path, nil).list(), []any{})
			continue
		}
		there, nowhere := elsewhere.do(t, o.method, own(o.path), o.body()), elsewhere.do(t, o.method, absent(o.path), o.body())
		if there.status != 404 || there.code() != nowhere.code() || there.body["message"] != nowhere.body["message"] {
			t.Errorf("%s %s elsewhere: %d %s, want %s", o.method, o.path, there.status, there.text, nowhere.text)
		}
	}

	// Owners write, but not what the subscription sees and who manages it.
	owner.want(t, 200, "", "PATCH", at, object{"name": "Ours", "url": r.URL + "/ours", "description": "d"})
	for name, value := range map[string]any{
		"events":     []any{"*"},
		"visible_to": object{"subject": user(ann), "action": "view"},
		"owners":     []any{object{"type": "application", "id": machine.id}},
		"viewers":    []any{},
	} {
		a := owner.want(t, 403, "permission_denied", "PATCH", at, object{"name": "Wide", name: value})
		equal(t, name, []any{a.details()["required_scope"], strings.Contains(a.body["message"].(string), name)}, []any{"webhooks:write", true})
	}
	kept := c.want(t, 200, "", "GET", at, nil).data()
	equal(t, "unchanged", []any{kept["name"], kept["events"], kept["visible_to"]}, []any{"Ours", []any{"scope.*"}, nil})
	c.want(t, 200, "", "PATCH", at, object{"visible_to": object{"subject": user(ann), "action": "view"}})
	owner.want(t, 200, "", "PATCH", at, object{"events": []any{"*"}}) // of what its subject may see
	for name, value := range map[string]any{"visible_to": nil, "owners": []any{}} {
		owner.want(t, 403, "permission_denied", "PATCH", at, object{name: value})
	}
	owner.want(t, 403, "permission_denied", "PATCH", at, object{"visible_to": object{"subject": user(ben), "action": "view"}})
	owner.want(t, 202, "", "POST", webhooksPath+"/dlq-entries/"+entries[0]+"/replay", nil)
	owner.want(t, 200, "", "POST", webhooksPath+"/dlq-entries/"+entries[1]+"/drop", nil)
	equal(t, "replayed", owner.want(t, 202, "", "POST", at+"/dlq/replay", object{}).data()["queued"], 1.0)
	owner.want(t, 202, "", "POST", own(webhooksPath+"/deliveries/{delivery_id}/redeliver"), nil)
	owner.want(t, 202, "", "POST", at+"/test", nil)
	owner.want(t, 200, "", "POST", at+"/disable", nil)
	owner.want(t, 200, "", "POST", at+"/enable", nil)
	rotated := owner.under(t, "mine", "POST", at+"/rotate-secret", object{})
	signingSecret(t, rotated.data())
	equal(t, "the same key", owner.under(t, "mine", "POST", at+"/rotate-secret", object{}).text, rotated.text)

	// A token of the same application with the scope does not share its idempotency keys with one
	// that has lost the scope.
	strong := w.application(t, c, "webhooks:write", "resources:read")
	wide := c.with(w.token(t, c, strong))
	had := wide.under(t, "k", "POST", at+"/rotate-secret", object{})
	signingSecret(t, had.data())
	narrow := c.form(t, basic(strong.id, strong.secret), url.Values{"grant_type": {"client_credentials"}, "scope": {"resources:read"}}).body["access_token"].(string)
	lost := c.with(narrow).under(t, "k", "POST", at+"/rotate-secret", object{})
	equal(t, "without the scope", []any{lost.status, lost.code()}, []any{403, "insufficient_scope"})

	// An owner whose account was deleted can be removed, or named again.
	gone := member(t, c, "gone@example.com")
	orphan, _ := subscribe(t, c, r.URL, object{"owners": []any{user(gone), user(ann)}, "viewers": []any{user(gone)}}, "scope.*")
	c.want(t, 204, "", "DELETE", usersPath+"/"+gone, nil)
	kept = c.want(t, 200, "", "PATCH", subscriptionsPath+"/"+orphan, object{"owners": []any{user(ann)}, "viewers": []any{user(gone), user(ben)}}).data()
	equal(t, "owners", kept["owners"], []any{user(ann)})
	signedIn(t, c, "ann@example.com").want(t, 200, "", "PATCH", subscriptionsPath+"/"+orphan, object{"name": "Left"})
	c.want(t, 200, "", "PATCH", subscriptionsPath+"/"+orphan, object{"owners": []any{}, "viewers": []any{}})
	c.want(t, 204, "", "DELETE", subscriptionsPath+"/"+orphan, nil)

	// The relation ends.
	c.want(t, 200, "", "PATCH", at, object{"owners": []any{user(ann)}})
	refused("a former owner", owner, own, "")
	c.want(t, 204, "", "DELETE", groupsPath+"/"+staff+"/members/"+ben, nil)
	refused("a former member", viewer, own, "")
	signedIn(t, c, "ann@example.com").want(t, 204, "", "DELETE", at, nil)
	c.want(t, 404, "subscription_not_found", "GET", at, nil)
	c.want(t, 404, "resource_not_found", "GET", path("webhook_subscription", id)+"/relations", nil)
}

// visibleEvents delivers to an integrator the events about resources that its team may view, at
// the state right after each event.
func visibleEvents(t *testing.T, w *world, c *client) {
	w.ahead.Store(0)
	define(t, c)
	r, all := newReceiver(t, http.StatusNoContent), newReceiver(t, http.StatusNoContent)
	team := object{"type": "group", "id": "team"}
	relate(t, c, "document", "seen", "viewer", team)
	id, _ := subscribe(t, c, r.URL, object{"visible_to": object{"subject": team, "action": "view"}}, "*")
	subscribe(t, c, all.URL, nil, "resource.*", "relation.*", "group.*")
	bob := user("bob")

	relate(t, c, "document", "hidden", "viewer", bob)
	relate(t, c, "document", "seen", "editor", bob)     // 1
	relate(t, c, "document", "granted", "viewer", team) // 2: visible by the event itself
	group(t, c, "unrelated")                            // about no resource
	c.want(t, 204, "", "DELETE", path("document", "granted")+"/relations", relation(team, "viewer"))
	relate(t, c, "document", "granted", "editor", bob)
	c.want(t, 200, "", "POST", "/api/v1/resources/relations/bulk", object{"operations": []any{ // 3
		op("create", "document", "hidden", "editor", bob),
		op("create", "document", "seen", "owner", bob),
		op("delete", "document", "seen", "editor", bob),
		op("delete", "document", "hidden", "viewer", bob),
	}})
	c.want(t, 200, "", "POST", "/api/v1/resources/relations/bulk", object{"operations": []any{ // nothing visible
		op("create", "document", "hidden", "viewer", bob), op("create", "folder", "hidden", "viewer", bob),
	}})
	c.want(t, 200, "", "POST", "/api/v1/resources", with(resource("document", "seen"), object{"attributes": object{"a": 1}})) // 4
	c.want(t, 204, "", "DELETE", path("document", "hidden"), nil)
	c.want(t, 204, "", "DELETE", path("document", "seen"), nil) // 5: visible before it
	all.wait(t, 11)
	got := r.wait(t, 5)
	equal(t, "deliveries", len(c.want(t, 200, "", "GET", subscriptionsPath+"/"+id+"/deliveries", nil).list()), 5)
	sequence := func(a, b received) int {
		return int(a.event["sequence"].(float64) - b.event["sequence"].(float64))
	}
	slices.SortFunc(got, sequence)
	var summary []string
	for _, one := range got {
		data := one.event["data"].(object)
		what := fmt.Sprint(one.event["event_type"])
		for _, name := range []string{"resource", "relation"} {
			about, _ := data[name].(object)
			if inner, ok := about["resource"].(object); ok {
				about = inner
			}
			if about != nil {
				what += fmt.Sprint(" ", about["external_id"])
			}
		}
		if list, ok := data["operations"].([]any); ok {
			what += fmt.Sprint(" ", data["created"], data["updated"], data["deleted"])
			for _, item := range list {
				what += fmt.Sprint(" ", item.(object)["op"], " ", item.(object)["resource"].(object)["external_id"])
			}
		}
		summary = append(summary, what)
	}
	equal(t, "what the team sees", summary, []string{
		"relation.created seen", "relation.created granted", "relation.bulk_applied 1 0 1 create seen delete seen",
		"resource.updated seen", "resource.deleted seen",
	})
	// The other subscription has all, with the same ids.
	whole := all.all()
	slices.SortFunc(whole, sequence)
	n := 0
	for _, one := range whole {
		if one.event["event_type"] == "relation.bulk_applied" {
			n++
			if n == 1 {
				equal(t, "all operations", len(one.event["data"].(object)["operations"].([]any)), 4)
				equal(t, "event_id", one.event["event_id"], got[2].event["event_id"])
			}
		}
	}
	equal(t, "bulk events", n, 2)
}
