package api_test

import (
	"testing"
	"time"
)

func checkHistory(t *testing.T, _ *world, c *client) {
	define(t, c)
	relate(t, c, "document", "d", "owner", user("bob"))
	question := check(user("ann"), "view", resource("document", "d"))
	ask := func(more object) answer {
		t.Helper()
		return c.want(t, 200, "", "POST", historyPath, with(question, more))
	}
	first := relate(t, c, "folder", "f", "viewer", user("ann"))
	granted := relate(t, c, "document", "d", "parent", object{"type": "folder", "id": "f"})
	relate(t, c, "document", "d", "editor", user("bob")) // which does not matter
	now := ask(nil).list()
	equal(t, "changes", len(now), 1)
	change := now[0].(map[string]any)
	equal(t, "changes", change["changes"], []any{object{
		"op": "create", "resource": resource("document", "d"), "relation": "parent", "subject": object{"type": "folder", "id": "f"},
	}})
	equal(t, "the write", []any{change["allowed"], change["cause"], change["consistency_token"]}, []any{true, "write", granted.meta("consistency_token")})
	if actor, _ := change["actor"].(string); actor == "" || len(change["reasons"].([]any)) == 0 {
		t.Errorf("no actor, or no reasons: %v", change)
	}

	// A relation expires, and a type changes.
	soon := time.Now().Add(200 * time.Millisecond)
	c.want(t, 200, "", "POST", path("document", "d")+"/relations", with(relation(object{"type": "folder", "id": "f"}, "parent"), object{"expires_at": soon.UTC().Format(time.RFC3339Nano)}))
	time.Sleep(time.Until(soon) + 2*time.Millisecond)
	c.want(t, 200, "", "POST", "/api/v1/resource-types", `{"name":"document","relations":[{"name":"parent","subjects":["folder"]},{"name":"owner"},{"name":"banned","subjects":["user"]},
		{"name":"editor"},{"name":"approver"},{"name":"reader"},{"name":"viewer","subjects":["user","user:*","group#member","folder#viewer"],"rewrites":[{"kind":"computed","relation":"owner"}]}]}`)
	c.want(t, 204, "", "DELETE", path("document", "d"), nil)

	type step struct {
		allowed bool
		cause   string
		failure any
	}
	steps := func(list []any) (all []step) {
		for _, item := range list {
			one := item.(map[string]any)
			all = append(all, step{one["allowed"].(bool), one["cause"].(string), one["error"]})
		}
		return all
	}
	want := []step{
		{false, "write", "resource_not_found"},
		{false, "expiry", nil},
		{true, "write", nil},
		{false, "write", nil},
		{false, "resource_types", "resource_not_found"},
	}
	whole := ask(object{"limit": 100})
	equal(t, "history", steps(whole.list()), want)
	equal(t, "its end", []any{whole.meta("next_cursor"), whole.meta("history_ended"), whole.meta("limit")}, []any{nil, false, 100.0})
	var paged []any
	for page := ask(nil); ; page = ask(object{"cursor": page.meta("next_cursor")}) {
		paged = append(paged, page.list()...)
		if page.meta("next_cursor") == nil {
			break
		}
	}
	equal(t, "pages", paged, whole.list())
	equal(t, "until the grant", steps(ask(object{"at": first.meta("consistency_token"), "limit": 100}).list()), want[3:])

	cursor := ask(nil).meta("next_cursor")
	c.want(t, 400, "cursor_invalid", "POST", historyPath, with(question, object{"cursor": cursor, "action": "edit"}))
	c.want(t, 410, "history_expired", "POST", historyPath, with(question, object{"at": inAnotherEpoch(t, granted.meta("consistency_token").(string))}))
	equal(t, "fields", fields(c.want(t, 400, "validation_failed", "POST", historyPath, object{"limit": 101, "at": "1:0"})),
		[]string{"subject/type", "subject/id", "resource/type", "resource/external_id", "at", "action", "limit"})
	c.want(t, 400, "validation_failed", "POST", historyPath, with(question, object{"limit": 0}))
	// A question that is not valid has a history, too.
	equal(t, "of an unknown type", steps(c.want(t, 200, "", "POST", historyPath, check(object{"type": "ghost", "id": "1"}, "view", resource("document", "d"))).list()), []step(nil))
}
