package api_test

import (
	"maps"
	"net/url"
	"strings"
	"testing"
)

// consoleUsers: administrators create, change and delete users in the console, and act on their
// accounts.
func consoleUsers(t *testing.T, w *world, c *client) {
	ann := member(t, c, "ann@example.com")
	group := c.want(t, 201, "", "POST", "/api/v1/groups", object{"slug": "admins", "name": "Admins", "scopes": []string{"users:read", "users:write"}}).data()["id"].(string)
	c.want(t, 201, "", "POST", "/api/v1/groups/"+group+"/members", object{"user_id": ann})
	me := c.with(signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string))
	steppedUp(t, me)
	get := func(target string) shown { return c.visit(t, "GET", target, asBrowser(me.token), nil) }
	post := func(target string, form url.Values) shown {
		return c.visit(t, "POST", target, asBrowser(me.token), form)
	}
	leads := func(p shown, to string) {
		t.Helper()
		if p.status != 303 || p.header.Get("Location") != to {
			t.Fatalf("%d %s, want %s\n%s", p.status, p.header.Get("Location"), to, p.html)
		}
	}
	says := func(p shown, status int, words ...string) {
		t.Helper()
		for _, text := range words {
			if p.status != status || !strings.Contains(p.html, text) {
				t.Errorf("%d without %q, want %d\n%s", p.status, text, status, p.html)
			}
		}
	}
	// sent returns the fields of the form on a page, with others.
	sent := func(p shown, more url.Values) url.Values {
		form := url.Values{}
		for name, value := range hiddenFields(p.html) {
			form.Set(name, value)
		}
		for name, values := range more {
			form[name] = values
		}
		return form
	}

	// A new user. A form that is sent twice makes one.
	says(get("/console/users"), 200, `href="/console/users/new"`)
	form := sent(get("/console/users/new"), url.Values{"email": {"bob@example.com"}, "name": {`Bob <"b>`}, "attributes": {`{"team": "ops"}`}, "email_verified": {"yes"}, "password": {secret}})
	for field, wrong := range map[string]string{"email": "no address", "password": "short", "attributes": "[1]", "locale": "no such"} {
		with := sent(get("/console/users/new"), form)
		with.Set("once", "of "+field)
		with.Set(field, wrong)
		p := post("/console/users/new", with)
		says(p, 400, `aria-invalid="true"`, "Bob &lt;&#34;b&gt;")
		if strings.Contains(p.html, secret) {
			t.Errorf("the page of a wrong %s has the password", field)
		}
	}
	page := post("/console/users/new", form).header.Get("Location")
	leads(post("/console/users/new", form), page)
	bob := strings.TrimSuffix(strings.TrimPrefix(page, "/console/users/"), "?done=user-created")
	says(get(page), 200, "User created.", `Bob &lt;&#34;b&gt;`)
	u := c.want(t, 200, "", "GET", "/api/v1/users/"+bob, nil).data()
	equal(t, "user", []any{u["email"], u["name"], u["email_verified"], u["attributes"], u["password_set"]}, []any{"bob@example.com", `Bob <"b>`, true, object{"team": "ops"}, true})
	again := maps.Clone(form)
	again.Set("once", "again")
	says(post("/console/users/new", again), 409, `aria-invalid="true"`)

	// A change, and one that was overtaken.
	page = "/console/users/" + bob
	edit := sent(get(page+"/edit"), url.Values{"name": {"Bob"}, "attributes": {`{"team": "ops"}`}, "email_verified": {"yes"}, "password_must_be_reset": {"yes"}})
	overtaken := sent(get(page+"/edit"), url.Values{"name": {"Robert"}})
	leads(post(page+"/edit", edit), page+"?done=saved")
	says(post(page+"/edit", overtaken), 409, "changed meanwhile", "Robert")
	u = c.want(t, 200, "", "GET", "/api/v1/users/"+bob, nil).data()
	equal(t, "changed", []any{u["name"], u["attributes"], u["password_must_be_reset"]}, []any{"Bob", object{"team": "ops"}, true})
	leads(post(page+"/edit", sent(get(page+"/edit"), url.Values{"name": {"Bob"}, "email_verified": {"yes"}, "password": {"another long secret"}})), page+"?done=saved")
	u = c.want(t, 200, "", "GET", "/api/v1/users/"+bob, nil).data()
	equal(t, "cleared", []any{u["attributes"], u["password_must_be_reset"]}, []any{nil, false})

	// The account: a link, sessions and factors.
	signed := func() *client {
		return c.with(signIn(t, c, "bob@example.com", "another long secret", "complete").data()["session_token"].(string))
	}
	first, second := signed(), signed()
	session := first.want(t, 200, "", "GET", authPath+"/session", nil).data()["session"].(object)["id"].(string)
	leads(post(page+"/sessions/"+session+"/end", sent(get(page), nil)), page+"?done=session-ended")
	first.want(t, 401, "invalid_token", "GET", mePath+"/profile", nil)
	second.want(t, 200, "", "GET", mePath+"/profile", nil)
	says(get(page+"/sign-out"), 200, "Sign out bob@example.com?")
	leads(post(page+"/sign-out", sent(get(page+"/sign-out"), nil)), page+"?done=signed-out")
	second.want(t, 401, "invalid_token", "GET", mePath+"/profile", nil)
	factors := func() []any { return c.want(t, 200, "", "GET", "/api/v1/users/"+bob+"/mfa/factors", nil).list() }
	for _, all := range []bool{false, true} {
		steppedUp(t, signed())
		path, done := "/factors/"+factors()[0].(object)["id"].(string)+"/remove", "factor-removed"
		if all {
			path, done = "/reset-factors", "factors-reset"
		}
		says(get(page), 200, page+path)
		leads(post(page+path, sent(get(page+path), nil)), page+"?done="+done)
		equal(t, "factors", len(factors()), 0)
	}
	leads(post(page+"/reset-password", sent(get(page), nil)), page+"?done=reset-sent")
	w.mailbox.take(t, "bob@example.com", "Choose a new password")

	// The end, and a person without the right.
	says(get(page+"/delete"), 200, "Delete bob@example.com?")
	leads(post(page+"/delete", sent(get(page+"/delete"), nil)), "/console/users?done=user-deleted")
	c.want(t, 404, "user_not_found", "GET", "/api/v1/users/"+bob, nil)
	c.want(t, 200, "", "PATCH", "/api/v1/groups/"+group, object{"scopes": []string{"users:read"}})
	own := "/console/users/" + ann
	for _, p := range []shown{get("/console/users"), get(own)} {
		if p.status != 200 || strings.Contains(p.html, "/console/users/new") || strings.Contains(p.html, own+"/") {
			t.Errorf("a reader: %d\n%s", p.status, p.html)
		}
	}
	for _, path := range []string{"/console/users/new", own + "/edit", own + "/delete", own + "/reset-factors", own + "/sign-out", own + "/reset-password"} {
		equal(t, path, post(path, url.Values{"email": {"eve@example.com"}, "once": {"x"}}).status, 403)
	}
}
