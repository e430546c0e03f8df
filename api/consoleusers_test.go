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
	a := newAdministrator(t, c, "users:read", "users:write")
	visit, has, fill, twice := a.visit, a.has, a.fill, a.twice

	// A new user. A form that is sent twice makes one.
	has(visit("GET", "/console/users", nil), 200, `href="/console/users/new"`)
	form := fill("/console/users/new", url.Values{"email": {"bob@example.com"}, "name": {`Bob <"b>`}, "attributes": {`{"team": "ops"}`}, "email_verified": {"yes"}, "password": {secret}})
	for field, wrong := range map[string]string{"email": "no address", "password": "short", "attributes": "[1]", "locale": "no such"} {
		with := fill("/console/users/new", form)
		with.Set("once", "of "+field)
		with.Set(field, wrong)
		p := visit("POST", "/console/users/new", with)
		has(p, 400, `aria-invalid="true"`, "Bob &lt;&#34;b&gt;")
		if strings.Contains(p.html, secret) {
			t.Errorf("the page of a wrong %s has the password", field)
		}
	}
	page := twice("/console/users/new", form, "?done=user-created")
	bob := strings.TrimSuffix(strings.TrimPrefix(page, "/console/users/"), "?done=user-created")
	has(visit("GET", page, nil), 200, "User created.", `Bob &lt;&#34;b&gt;`)
	u := c.want(t, 200, "", "GET", "/api/v1/users/"+bob, nil).data()
	equal(t, "user", []any{u["email"], u["name"], u["email_verified"], u["attributes"], u["password_set"]}, []any{"bob@example.com", `Bob <"b>`, true, object{"team": "ops"}, true})
	again := maps.Clone(form)
	again.Set("once", "again")
	has(visit("POST", "/console/users/new", again), 409, `aria-invalid="true"`)

	// A change, and one that was overtaken.
	page = "/console/users/" + bob
	edit := fill(page+"/edit", url.Values{"name": {"Bob"}, "attributes": {`{"team": "ops"}`}, "email_verified": {"yes"}, "password_must_be_reset": {"yes"}})
	overtaken := fill(page+"/edit", url.Values{"name": {"Robert"}})
	twice(page+"/edit", edit, page+"?done=saved")
	has(visit("POST", page+"/edit", overtaken), 409, "changed meanwhile", "Robert")
	u = c.want(t, 200, "", "GET", "/api/v1/users/"+bob, nil).data()
	equal(t, "changed", []any{u["name"], u["attributes"], u["password_must_be_reset"]}, []any{"Bob", object{"team": "ops"}, true})
	has(visit("POST", page+"/edit", fill(page+"/edit", url.Values{"name": {"Bob"}, "email_verified": {"yes"}, "password": {"another long secret"}})), 303)
	u = c.want(t, 200, "", "GET", "/api/v1/users/"+bob, nil).data()
	equal(t, "cleared", []any{u["attributes"], u["password_must_be_reset"]}, []any{nil, false})

	// The account: a link, sessions and factors.
	signed := func() *client {
		return c.with(signIn(t, c, "bob@example.com", "another long secret", "complete").data()["session_token"].(string))
	}
	first, second := signed(), signed()
	session := first.want(t, 200, "", "GET", authPath+"/session", nil).data()["session"].(object)["id"].(string)
	twice(page+"/sessions/"+session+"/end", fill(page, nil), page+"?done=session-ended")
	first.want(t, 401, "invalid_token", "GET", mePath+"/profile", nil)
	second.want(t, 200, "", "GET", mePath+"/profile", nil)
	has(visit("GET", page+"/sign-out", nil), 200, "Sign out bob@example.com?")
	twice(page+"/sign-out", fill(page+"/sign-out", nil), page+"?done=signed-out")
	second.want(t, 401, "invalid_token", "GET", mePath+"/profile", nil)
	factors := func() []any { return c.want(t, 200, "", "GET", "/api/v1/users/"+bob+"/mfa/factors", nil).list() }
	for _, all := range []bool{false, true} {
		steppedUp(t, signed())
		path, done := "/factors/"+factors()[0].(object)["id"].(string)+"/remove", "factor-removed"
		if all {
			path, done = "/reset-factors", "factors-reset"
		}
		has(visit("GET", page, nil), 200, page+path)
		twice(page+path, fill(page+path, nil), page+"?done="+done)
		equal(t, "factors", len(factors()), 0)
	}
	twice(page+"/reset-password", fill(page, nil), page+"?done=reset-sent")
	w.mailbox.take(t, "bob@example.com", "Choose a new password")

	// The end, and a person without the right.
	has(visit("GET", page+"/delete", nil), 200, "Delete bob@example.com?")
	twice(page+"/delete", fill(page+"/delete", nil), "/console/users?done=user-deleted")
	c.want(t, 404, "user_not_found", "GET", "/api/v1/users/"+bob, nil)
	a.restrict("users:read")
	own := "/console/users/" + a.id
	a.lacks(visit("GET", "/console/users", nil), "/console/users/new")
	a.lacks(visit("GET", own, nil), own+"/")
	for _, path := range []string{"/console/users/new", own + "/edit", own + "/delete", own + "/reset-factors", own + "/sign-out", own + "/reset-password"} {
		has(visit("POST", path, url.Values{"email": {"eve@example.com"}, "once": {"x"}}), 403)
	}
}
