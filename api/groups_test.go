package api_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"stonetown/engine"
	"stonetown/identity"
	"stonetown/schema"
	"stonetown/tuplestore"
)

const groupsPath = "/api/v1/groups"

// makeUsers makes users, and returns their ids.
func makeUsers(t testing.TB, c *client, prefix string, n int) []string {
	t.Helper()
	ids := make([]string, n)
	for i := range ids {
		form := object{"email": fmt.Sprintf("%s%d@example.com", prefix, i), "name": fmt.Sprintf("%s %d", prefix, i), "email_verified": true}
		ids[i] = c.want(t, 201, "", "POST", usersPath, form).data()["id"].(string)
	}
	return ids
}

func group(t testing.TB, c *client, slug string, scopes ...string) string {
	t.Helper()
	return c.want(t, 201, "", "POST", groupsPath, object{"slug": slug, "name": strings.ToUpper(slug), "scopes": append([]string{}, scopes...)}).data()["id"].(string)
}

// groupLife follows a group from its creation to its end.
func groupLife(t *testing.T, w *world, c *client) {
	seen := len(w.events(t, c, 0))
	happened := func(want ...object) {
		t.Helper()
		found := w.events(t, c, seen)
		seen += len(found)
		var got []object
		for _, e := range found {
			data := parse(t, string(e.Data)).(map[string]any)
			delete(data, "group")
			got = append(got, object{"type": string(e.Type), "data": data})
		}
		equal(t, "events", got, want)
	}
	a := c.want(t, 201, "", "POST", groupsPath, object{"slug": "editors", "name": "Editors", "description": "Those who write", "scopes": []any{"users:write", "resources:read", "users:write"}})
	g := a.data()
	id := g["id"].(string)
	target := groupsPath + "/" + id
	equal(t, "location", a.header.Get("Location"), target)
	for name, want := range map[string]any{
		"slug": "editors", "name": "Editors", "description": "Those who write", "scopes": []any{"resources:read", "users:write"},
		"member_count": 0.0, "members": []any{}, "can_delete": true,
	} {
		equal(t, name, g[name], want)
	}
	equal(t, "read", c.want(t, 200, "", "GET", target, nil).data(), g)
	happened(object{"type": "group.created", "data": object{}})
	// The scopes are relations in the engine.
	holders := func(scope string) []any {
		t.Helper()
		return c.want(t, 200, "", "POST", "/api/v1/resources/list-subjects",
			object{"resource": resource("scope", scope), "action": "holder", "subject_type": "group", "subject_relation": "member"}).list()
	}
	equal(t, "holders of users:write", len(holders("users:write")), 1)

	a = c.want(t, 200, "", "PATCH", target, object{"name": "Writers", "scopes": []any{"groups:read", "resources:read"}})
	equal(t, "name", a.data()["name"], "Writers")
	equal(t, "description", a.data()["description"], "Those who write")
	equal(t, "scopes", a.data()["scopes"], []any{"groups:read", "resources:read"})
	equal(t, "holders of users:write", len(holders("users:write")), 0)
	equal(t, "holders of groups:read", len(holders("groups:read")), 1)
	happened(object{"type": "group.updated", "data": object{"changes": object{
		"name": []any{"Editors", "Writers"}, "scopes": []any{[]any{"resources:read", "users:write"}, []any{"groups:read", "resources:read"}},
	}}})
	c.want(t, 200, "", "PATCH", target, object{"name": "Writers"})
	c.want(t, 200, "", "PATCH", target, object{})
	happened()
	c.want(t, 409, "slug_unavailable", "POST", groupsPath, object{"slug": "editors", "name": "x"})

	ids := makeUsers(t, c, "life", 2)
	seen += 2
	c.want(t, 201, "", "POST", target+"/members", object{"user_id": ids[0]})
	happened(object{"type": "group.member_added", "data": object{"user": object{"id": ids[0]}}})
	c.want(t, 204, "", "DELETE", target, nil)
	happened(object{"type": "group.deleted", "data": object{}})
	equal(t, "holders of groups:read", len(holders("groups:read")), 0)
	for _, gone := range []struct {
		method, target string
		body           any
	}{
		{"GET", target, nil},
		{"PATCH", target, object{"name": "x"}},
		{"DELETE", target, nil},
		{"GET", target + "/members", nil},
		{"POST", target + "/members", object{"user_id": ids[0]}},
		{"DELETE", target + "/members/" + ids[0], nil},
		{"POST", target + "/members/bulk", object{"user_ids": ids}},
		{"POST", target + "/members/bulk-remove", object{"user_ids": ids}},
	} {
		c.want(t, 404, "group_not_found", gone.method, gone.target, gone.body)
	}
	again := group(t, c, "editors")
	equal(t, "members of another by the name", c.want(t, 200, "", "GET", groupsPath+"/"+again, nil).data()["member_count"], 0.0)

	other := w.tenant(t, "groups-other")
	foreign := group(t, other, "editors")
	c.want(t, 404, "group_not_found", "GET", groupsPath+"/"+foreign, nil)
	reader := c.with(w.token(t, c, w.application(t, c, "groups:read")))
	equal(t, "what a reader may do", reader.want(t, 200, "", "GET", groupsPath+"/"+again, nil).data()["can_delete"], false)
	reader.want(t, 403, "insufficient_scope", "DELETE", groupsPath+"/"+again, nil)
}

// groupForms refuses invalid groups and tests the filters of lists.
func groupForms(t *testing.T, _ *world, c *client) {
	long := strings.Repeat("x", 501)
	id := group(t, c, "first", "users:read")
	target := groupsPath + "/" + id
	for form, field := range map[string]string{
		`{"name":"x"}`: "slug", `{"slug":"x"}`: "name", `{"slug":"x","name":"` + long + `"}`: "name", `{"slug":"x","name":"x","description":"` + long + `"}`: "description",
	} {
		equal(t, form[:min(len(form), 60)], fields(c.want(t, 400, "validation_failed", "POST", groupsPath, form)), []string{field})
	}
	equal(t, "patch", fields(c.want(t, 400, "validation_failed", "PATCH", target, object{"name": "", "description": long})), []string{"name", "description"})
	for _, slug := range []string{"Editors", "-a", "a--b", "a_b", "new", "bulk", "me", "system", strings.Repeat("a", 64)} {
		c.want(t, 400, "slug_invalid", "POST", groupsPath, object{"slug": slug, "name": "x"})
	}
	equal(t, "scopes", c.want(t, 400, "scope_unknown", "POST", groupsPath, object{"slug": "x", "name": "x", "scopes": []any{"users:read", "a:b", "c"}}).details()["scopes"], []any{"a:b", "c"})
	c.want(t, 400, "scope_unknown", "PATCH", target, object{"scopes": []any{"a:b"}})
	c.want(t, 400, "invalid_json", "POST", groupsPath, `{`)
	c.want(t, 400, "invalid_json", "PATCH", target, `{"name":`)
	c.want(t, 400, "immutable_field", "PATCH", target, object{"slug": "first"})
	equal(t, "scopes taken away", c.want(t, 200, "", "PATCH", target, object{"scopes": []any{}, "description": ""}).data()["scopes"], []any{})
	for bad, field := range map[string]string{"q=" + strings.Repeat("x", 255): "q", "has_user=%00": "has_user", "limit=251": "limit"} {
		equal(t, bad, fields(c.want(t, 400, "validation_failed", "GET", groupsPath+"?"+bad, nil)), []string{field})
	}

	ann := makeUsers(t, c, "forms", 1)[0]
	var ids []string
	for i := range 12 {
		g := group(t, c, fmt.Sprintf("team-%d", i))
		if ids = append(ids, g); i%3 == 0 {
			c.want(t, 201, "", "POST", groupsPath+"/"+g+"/members", object{"user_id": ann})
		}
	}
	list := func(query string, limit int) (found []string) {
		t.Helper()
		cursor := ""
		for {
			a := c.want(t, 200, "", "GET", fmt.Sprintf("%s?limit=%d&%s%s", groupsPath, limit, query, cursor), nil)
			for _, item := range a.list() {
				found = append(found, item.(map[string]any)["id"].(string))
			}
			next, ok := a.meta("next_cursor").(string)
			if !ok {
				return found
			}
			cursor = "&cursor=" + url.QueryEscape(next)
		}
	}
	for query, want := range map[string][]string{
		"q=team":   {ids[11], ids[10], ids[9], ids[8], ids[7], ids[6], ids[5], ids[4], ids[3], ids[2], ids[1], ids[0]},
		"q=TEAM-1": {ids[11], ids[10], ids[1]}, "q=_": nil, "has_user=" + ann: {ids[9], ids[6], ids[3], ids[0]}, "has_user=usr_nobody": nil,
		"q=team-9&has_user=" + ann: {ids[9]},
	} {
		for _, limit := range []int{1, 3, 250} {
			equal(t, fmt.Sprintf("%q by %d", query, limit), list(query, limit), want)
		}
	}
	groupsOfAnn := usersPath + "/" + ann + "/groups"
	var found []any
	for cursor := ""; ; {
		page := c.want(t, 200, "", "GET", groupsOfAnn+"?limit=3"+cursor, nil)
		for _, item := range page.list() {
			found = append(found, item.(map[string]any)["id"])
		}
		next, ok := page.meta("next_cursor").(string)
		if !ok {
			break
		}
		cursor = "&cursor=" + url.QueryEscape(next)
	}
	equal(t, "groups of a user", found, []any{ids[9], ids[6], ids[3], ids[0]})
	inline := c.want(t, 200, "", "GET", usersPath+"/"+ann, nil).data()["groups"].([]any)
	equal(t, "groups of a user", len(inline), 4)
	equal(t, "a group of a user", inline[0], object{"id": ids[9], "name": "TEAM-9"})
	c.want(t, 404, "user_not_found", "GET", usersPath+"/usr_nobody/groups", nil)
	c.want(t, 400, "cursor_invalid", "GET", groupsOfAnn+"?cursor=x", nil)
	equal(t, "limit", fields(c.want(t, 400, "validation_failed", "GET", groupsOfAnn+"?limit=0", nil)), []string{"limit"})
	c.want(t, 400, "cursor_invalid", "GET", groupsPath+"?cursor=x", nil)
	c.want(t, 400, "cursor_invalid", "GET", target+"/members?cursor=x", nil)
	equal(t, "limit", fields(c.want(t, 400, "validation_failed", "GET", target+"/members?limit=0", nil)), []string{"limit"})
}

// groupMembers adds and removes members, one by one and many at once.
func groupMembers(t *testing.T, w *world, c *client) {
	ids := makeUsers(t, c, "member", 60)
	g := group(t, c, "crew")
	target := groupsPath + "/" + g
	count := func() any { t.Helper(); return c.want(t, 200, "", "GET", target, nil).data()["member_count"] }

	a := c.want(t, 201, "", "POST", target+"/members", object{"user_id": ids[0]})
	equal(t, "email", a.data()["email"], "member0@example.com")
	if a.data()["added_by"] == "" || a.data()["added_at"] == "" {
		t.Errorf("added by %v at %v", a.data()["added_by"], a.data()["added_at"])
	}
	again := c.want(t, 200, "", "POST", target+"/members", object{"user_id": ids[0]})
	equal(t, "again", again.data(), a.data())
	equal(t, "code", again.meta("code"), "user_already_member")
	c.want(t, 404, "user_not_found", "POST", target+"/members", object{"user_id": "usr_nobody"})
	c.want(t, 400, "validation_failed", "POST", target+"/members", object{"user_id": ""})
	c.want(t, 400, "invalid_json", "POST", target+"/members", `{"user_id":`)

	results := func(a answer) (got []string) {
		for _, item := range a.list() {
			r := item.(map[string]any)
			text := r["user_id"].(string) + " " + r["status"].(string)
			if e, ok := r["error"].(map[string]any); ok {
				text += " " + e["code"].(string)
			}
			got = append(got, text)
		}
		return got
	}
	bulk := c.want(t, 200, "", "POST", target+"/members/bulk", object{"user_ids": []any{ids[2], "usr_nobody", ids[0], ids[1], ids[2]}})
	equal(t, "added", results(bulk), []string{ids[2] + " succeeded", "usr_nobody error user_not_found", ids[0] + " already_member", ids[1] + " succeeded"})
	equal(t, "summary", bulk.meta("summary"), object{"succeeded": 2.0, "already_member": 1.0, "not_member": 0.0, "error": 1.0})
	equal(t, "nobody known", results(c.want(t, 200, "", "POST", target+"/members/bulk", object{"user_ids": []any{"x"}})), []string{"x error user_not_found"})
	equal(t, "members", count(), 3.0)
	bulk = c.want(t, 200, "", "POST", target+"/members/bulk-remove", object{"user_ids": []any{ids[2], ids[9], ids[2], "usr_nobody"}})
	equal(t, "removed", results(bulk), []string{ids[2] + " succeeded", ids[9] + " not_member", "usr_nobody not_member"})
	equal(t, "summary", bulk.meta("summary"), object{"succeeded": 1.0, "already_member": 0.0, "not_member": 2.0, "error": 0.0})
	c.want(t, 204, "", "DELETE", target+"/members/"+ids[1], nil)
	for _, nobody := range []string{ids[1], "%00", "%ff", "*", strings.Repeat("x", 600)} {
		c.want(t, 404, "member_not_found", "DELETE", target+"/members/"+nobody, nil)
	}
	equal(t, "members", count(), 1.0)

	many := make([]string, identity.MaxMembers+1)
	for i := range many {
		many[i] = fmt.Sprint("usr_", i)
	}
	for _, verb := range []string{"/members/bulk", "/members/bulk-remove"} {
		c.want(t, 200, "", "POST", target+verb, object{"user_ids": many[1:]})
		equal(t, "at most", c.want(t, 400, "bulk_too_large", "POST", target+verb, object{"user_ids": many}).details()["max"], 1000.0)
		equal(t, "none", fields(c.want(t, 400, "validation_failed", "POST", target+verb, object{"user_ids": []any{}})), []string{"user_ids"})
		equal(t, "empty", fields(c.want(t, 400, "validation_failed", "POST", target+verb, object{"user_ids": []any{"a", ""}})), []string{"user_ids/1"})
		c.want(t, 400, "invalid_json", "POST", target+verb, `{"user_ids":`)
	}

	// Many at once, and page by page.
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			c.want(t, 200, "", "POST", target+"/members/bulk", object{"user_ids": ids[i*10 : i*10+10]})
			c.want(t, 200, "", "POST", target+"/members/bulk", object{"user_ids": ids})
		})
	}
	wg.Wait()
	equal(t, "members", count(), 60.0)
	equal(t, "inline", len(c.want(t, 200, "", "GET", target, nil).data()["members"].([]any)), 50)
	var found []string
	for cursor := ""; ; {
		page := c.want(t, 200, "", "GET", target+"/members?limit=7"+cursor, nil)
		for _, item := range page.list() {
			found = append(found, item.(map[string]any)["id"].(string))
		}
		next, ok := page.meta("next_cursor").(string)
		if !ok {
			break
		}
		cursor = "&cursor=" + url.QueryEscape(next)
	}
	want := slices.Clone(ids)
	slices.Sort(want)
	equal(t, "all pages", found, want)

	// Deleting a user ends all memberships.
	before := len(w.events(t, c, 0))
	c.want(t, 204, "", "DELETE", usersPath+"/"+ids[5], nil)
	equal(t, "members", count(), 59.0)
	var types []string
	for _, e := range w.events(t, c, before) {
		types = append(types, string(e.Type))
	}
	equal(t, "events", types, []string{"group.member_removed", "user.deleted"})
}

// groupRelations gives the access of a group to its members, and refuses writes of memberships
// by the operations on relations.
func groupRelations(t *testing.T, _ *world, c *client) {
	define(t, c)
	ids := makeUsers(t, c, "relation", 2)
	g := group(t, c, "readers", "resources:read")
	c.want(t, 201, "", "POST", groupsPath+"/"+g+"/members", object{"user_id": ids[0]})
	allowed := func(subject object) any {
		t.Helper()
		return c.want(t, 200, "", "POST", checkPath, check(subject, "view", resource("document", "d"))).data()["allowed"]
	}
	group := object{"type": "group", "id": g}
	c.want(t, 201, "", "POST", path("document", "d")+"/relations", relation(with(group, object{"relation": "member"}), "viewer"))
	equal(t, "a member", allowed(user(ids[0])), true)
	equal(t, "no member", allowed(user(ids[1])), false)
	equal(t, "the group", allowed(group), true)
	c.want(t, 204, "", "DELETE", groupsPath+"/"+g+"/members/"+ids[0], nil)
	equal(t, "a member no more", allowed(user(ids[0])), false)

	member := relation(user(ids[1]), "member")
	op := with(object{"op": "create", "resource": resource("group", g)}, member)
	denied := func(scope string, method, target string, body any) {
		t.Helper()
		equal(t, target, c.want(t, 403, "permission_denied", method, target, body).details()["required_scope"], scope)
	}
	denied("groups:write", "POST", path("group", g)+"/relations", member)
	denied("groups:write", "DELETE", path("group", g)+"/relations", member)
	denied("groups:write", "POST", "/api/v1/resources/relations/bulk", object{"operations": []any{op}})
	denied("groups:write", "POST", path("scope", "users:write")+"/relations", relation(with(group, object{"relation": "member"}), "holder"))
	denied("users:write", "POST", "/api/v1/resources", resource("user", ids[1]))
	denied("groups:write", "PATCH", path("group", g), object{"attributes": object{}})
	denied("groups:write", "DELETE", path("group", g), nil)
	// Groups that are not in the directory belong to the caller.
	c.want(t, 201, "", "POST", path("group", "eng")+"/relations", relation(user(ids[1]), "member"))
	c.want(t, 204, "", "DELETE", usersPath+"/"+ids[1], nil)
	equal(t, "of a deleted user", len(c.want(t, 200, "", "GET", path("group", "eng")+"/relations", nil).list()), 0)
}

// webhookRelations answers questions about webhook subscriptions, and refuses writes of their
// relations by the operations on relations and resources.
func webhookRelations(t *testing.T, w *world, c *client) {
	ids := makeUsers(t, c, "webhook", 4)
	g := group(t, c, "integrators", "resources:read")
	c.want(t, 201, "", "POST", groupsPath+"/"+g+"/members", object{"user_id": ids[2]})
	tenant, err := w.tenants.TenantByHost(t.Context(), c.host)
	if err != nil {
		t.Fatal(err)
	}
	subscription := tuplestore.Object{Type: schema.WebhookSubscriptionType, ID: "whs_a"}
	write := func(name string, subject tuplestore.Subject) engine.WriteOp {
		return engine.WriteOp{Resource: subscription, Relation: name, Subject: subject}
	}
	_, err = w.engine.Write(t.Context(), tenant.ID, engine.WriteRequest{Ops: []engine.WriteOp{
		write("owner", tuplestore.Subject{Type: "user", ID: ids[0]}),
		write("owner", tuplestore.Subject{Type: "application", ID: "client_a"}),
		write("viewer", tuplestore.Subject{Type: "user", ID: ids[1]}),
		write("viewer", tuplestore.Subject{Type: "group", ID: g, Relation: "member"}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	kept := func() {
		t.Helper()
		for _, q := range []struct {
			subject      object
			manage, view bool
		}{
			{user(ids[0]), true, true},
			{object{"type": "application", "id": "client_a"}, true, true},
			{user(ids[1]), false, true},
			{user(ids[2]), false, true},
			{user(ids[3]), false, false},
		} {
			equal(t, fmt.Sprint(q.subject, " manages"), allowed(t, c, q.subject, "manage", subscription.Type, subscription.ID), q.manage)
			equal(t, fmt.Sprint(q.subject, " views"), allowed(t, c, q.subject, "view", subscription.Type, subscription.ID), q.view)
		}
		equal(t, "relations", len(c.want(t, 200, "", "GET", path(subscription.Type, subscription.ID)+"/relations", nil).list()), 4)
		equal(t, "relations of a subject", len(c.want(t, 200, "", "GET", naming(user(ids[0])), nil).list()), 1)
	}
	kept()

	for _, name := range []string{"owner", "viewer"} {
		for _, subject := range []string{ids[0], ids[1], ids[3]} {
			op := with(object{"op": "create", "resource": resource(subscription.Type, subscription.ID)}, relation(user(subject), name))
			for _, r := range []struct {
				method, target string
				body           any
			}{
				{"POST", path(subscription.Type, subscription.ID) + "/relations", relation(user(subject), name)},
				{"DELETE", path(subscription.Type, subscription.ID) + "/relations", relation(user(subject), name)},
				{"POST", path(subscription.Type, "another") + "/relations", relation(user(subject), name)},
				{"POST", "/api/v1/resources/relations/bulk", object{"operations": []any{op}}},
				{"POST", "/api/v1/resources/relations/bulk", object{"operations": []any{with(op, object{"op": "delete"})}}},
			} {
				refused := c.want(t, 403, "permission_denied", r.method, r.target, r.body)
				equal(t, r.target, refused.details()["required_scope"], "webhooks:write")
			}
		}
	}
	c.want(t, 403, "permission_denied", "POST", "/api/v1/resources", resource(subscription.Type, "another"))
	c.want(t, 403, "permission_denied", "PATCH", path(subscription.Type, subscription.ID), object{"attributes": object{}})
	c.want(t, 403, "permission_denied", "DELETE", path(subscription.Type, subscription.ID), nil)
	c.want(t, 400, "validation_failed", "POST", "/api/v1/resource-types", object{"name": subscription.Type, "relations": []any{object{"name": "owner"}}})
	equal(t, "deleted by subject", c.want(t, 200, "", "DELETE", naming(user(ids[0])), nil).data()["deleted"], 0.0)
	equal(t, "deleted by subject and type", c.want(t, 200, "", "DELETE", naming(user(ids[1]), "resource_type", subscription.Type), nil).data()["deleted"], 0.0)
	kept()

	c.want(t, 204, "", "DELETE", usersPath+"/"+ids[0], nil)
	equal(t, "of a deleted user", len(c.want(t, 200, "", "GET", path(subscription.Type, subscription.ID)+"/relations", nil).list()), 3)
}

// administrators keeps at least one administrator who can sign in.
func administrators(t *testing.T, w *world, c *client) {
	ids := makeUsers(t, c, "admin", 3)
	d := w.config.Users.(*identity.Directory)
	tenant, err := w.tenants.TenantByHost(context.Background(), c.host)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := d.Administrators(context.Background(), tenant.ID, []string{"users:read", "users:write"}); err != nil {
			t.Fatal(err)
		}
	}
	found := c.want(t, 200, "", "GET", groupsPath+"?q=administrators", nil).list()
	if len(found) != 1 {
		t.Fatalf("%d groups", len(found))
	}
	g := found[0].(map[string]any)
	equal(t, "members", g["member_count"], 1.0)
	target := groupsPath + "/" + g["id"].(string)
	equal(t, "may be deleted", c.want(t, 200, "", "GET", target, nil).data()["can_delete"], false)
	c.want(t, 403, "permission_denied", "DELETE", target, nil)
	c.want(t, 403, "permission_denied", "PATCH", target, object{"scopes": []any{"users:read"}})
	c.want(t, 200, "", "PATCH", target, object{"name": "Admins", "scopes": []any{"users:write", "users:read"}})

	last := func(i int) {
		t.Helper()
		c.want(t, 409, "last_administrator", "POST", usersPath+"/"+ids[i]+"/disable", nil)
		c.want(t, 409, "last_administrator", "DELETE", usersPath+"/"+ids[i], nil)
		c.want(t, 409, "last_administrator", "DELETE", target+"/members/"+ids[i], nil)
		c.want(t, 409, "last_administrator", "POST", target+"/members/bulk-remove", object{"user_ids": ids})
	}
	last(0)
	c.want(t, 200, "", "POST", target+"/members/bulk", object{"user_ids": ids[1:]})
	c.want(t, 200, "", "POST", usersPath+"/"+ids[1]+"/disable", nil)
	c.want(t, 200, "", "POST", usersPath+"/"+ids[2]+"/disable", nil)
	last(0) // the others cannot sign in
	c.want(t, 200, "", "POST", usersPath+"/"+ids[1]+"/enable", nil)
	c.want(t, 204, "", "DELETE", target+"/members/"+ids[0], nil)
	c.want(t, 204, "", "DELETE", usersPath+"/"+ids[0], nil)
	last(1)

	// Of two parallel removals, one fails.
	for range 5 {
		both := makeUsers(t, c, "race", 2)
		c.want(t, 200, "", "POST", target+"/members/bulk", object{"user_ids": both})
		c.want(t, 200, "", "POST", usersPath+"/"+ids[1]+"/disable", nil)
		var wg sync.WaitGroup
		for _, id := range both {
			wg.Go(func() { c.do(t, "POST", usersPath+"/"+id+"/disable", nil) })
		}
		wg.Wait()
		active := 0
		for _, id := range both {
			if c.want(t, 200, "", "GET", usersPath+"/"+id, nil).data()["state"] == "active" {
				active++
			}
		}
		equal(t, "administrators left", active, 1)
		c.want(t, 200, "", "POST", usersPath+"/"+ids[1]+"/enable", nil)
		for _, id := range both {
			c.want(t, 204, "", "DELETE", usersPath+"/"+id, nil)
		}
	}
}
