package api_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// consoleIsClosed: who gets into the console, and what a browser cannot be made to do there. That
// it works is shown in a browser (cmd/stonetown).
func consoleIsClosed(t *testing.T, w *world, c *client) {
	const xss = `"><script>alert(1)</script>`
	ann := member(t, c, "ann@example.com")
	group := c.want(t, 201, "", "POST", "/api/v1/groups", object{"slug": "admins", "name": xss, "description": xss, "scopes": []string{"users:read", "users:write", "groups:read", "groups:write", "resources:read", "resources:write"}}).data()["id"].(string)
	c.want(t, 200, "", "PATCH", "/api/v1/users/"+ann, object{"name": xss})
	signed := signIn(t, c, "ann@example.com", secret, "complete").data()
	token := signed["session_token"].(string)
	get := func(target, token string) shown { return c.visit(t, "GET", target, asBrowser(token), nil) }
	signInFirst := func(what string, p shown, target string) {
		t.Helper()
		equal(t, what, []any{p.status, p.header.Get("Location")}, []any{303, "/auth/sign-in?next=" + url.QueryEscape(target)})
	}

	signInFirst("no session", c.visit(t, "GET", "/console/users?q=a", nil, nil), "/console/users?q=a")
	signInFirst("no session, a form", c.visit(t, "POST", "/console/groups/"+group, http.Header{"Sec-Fetch-Site": {"same-origin"}}, url.Values{"user": {ann}}), "/console/groups/"+group+"?user="+ann)
	signInFirst("an access token is no session", get("/console", signed["access_token"].(string)), "/console")
	signInFirst("an application is no person", get("/console", c.token), "/console")
	other := w.tenant(t, c.name()+"-other")
	signInFirst("a session of another tenant", other.visit(t, "GET", "/console", asBrowser(token), nil), "/console")

	// Without a right there is nothing to see; a membership counts at once, and so does its end.
	p := get("/console", token)
	equal(t, "no right", []any{p.status, strings.Contains(p.html, "no administrative rights"), strings.Contains(p.html, "<nav")}, []any{403, true, false})
	equal(t, "no right", get("/console/users/"+ann, token).status, 403)
	equal(t, "the cookie is no token for operations", c.with(token).send(t, "GET", "/api/v1/users", nil, nil).status, 403)
	c.want(t, 201, "", "POST", "/api/v1/groups/"+group+"/members", object{"user_id": ann})

	for target, status := range map[string]int{
		"/console": 200, "/console/users": 200, "/console/users?q=" + url.QueryEscape(xss): 200, "/console/users?state=" + url.QueryEscape(xss): 400, "/console/users?cursor=" + url.QueryEscape(xss): 400,
		"/console/users/" + ann: 200, "/console/users/" + ann + "/disable": 200, "/console/users/" + url.PathEscape(xss): 404, "/console/users/..%2Fgroups": 404,
		"/console/groups": 200, "/console/groups/" + group: 200, "/console/groups/" + group + "?user=" + url.QueryEscape(xss): 200,
		"/console/groups/" + group + "/remove?user=" + ann: 200, "/console/groups/" + group + "/remove?user=" + url.QueryEscape(xss): 404, "/console/groups/" + url.PathEscape(xss): 404,
	} {
		p := get(target, token)
		equal(t, target, p.status, status)
		policy := p.header.Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none'; style-src 'self';") || strings.Contains(policy, "unsafe") || p.header.Get("X-Frame-Options") != "DENY" ||
			p.header.Get("Referrer-Policy") != "no-referrer" || p.header.Get("Cache-Control") != "no-store" || p.header.Get("Set-Cookie") != "" {
			t.Errorf("%s: %v", target, p.header)
		}
		if strings.Contains(p.html, "<script") || strings.Contains(p.html, "style=") || strings.Contains(p.html, "onclick") || strings.Contains(p.html, "eyJ") || strings.Contains(p.html, token) {
			t.Errorf("%s holds what it was given as it is, something inline, or a token:\n%s", target, p.html)
		}
	}
	equal(t, "style", c.visit(t, "GET", "/console/assets/console.css", nil, nil).header.Get("Content-Type"), "text/css; charset=utf-8")
	equal(t, "not at the control plane", (&client{server: c.server, host: controlHost}).visit(t, "GET", "/console", asBrowser(token), nil).status, 404)
	equal(t, "method", c.visit(t, "DELETE", "/console", asBrowser(token), nil).status, 405)
	equal(t, "too large", c.visit(t, "POST", "/console/groups/"+group, asBrowser(token), url.Values{"user": {long(70_000)}}).status, 413)

	// Forms come from the console only, and a link changes nothing.
	bob := member(t, c, "bob@example.com")
	state := func() any { return c.want(t, 200, "", "GET", "/api/v1/users/"+bob, nil).data()["state"] }
	for _, header := range []http.Header{{"Sec-Fetch-Site": {"cross-site"}}, {"Sec-Fetch-Site": {"same-site"}}, {"Origin": {"https://evil.test"}}} {
		header["Cookie"] = []string{"__Host-sid=" + token}
		for target, form := range map[string]url.Values{"/console/users/" + bob + "/disable": {}, "/console/groups/" + group: {"user": {bob}}, "/console/groups/" + group + "/remove": {"user": {ann}}} {
			equal(t, "from another site", c.visit(t, "POST", target, header, form).status, 403)
		}
	}
	get("/console/users/"+bob+"/disable", token)
	get("/console/users/"+bob+"/enable", token)
	equal(t, "state", state(), "active")
	equal(t, "disabled", c.visit(t, "POST", "/console/users/"+bob+"/disable", asBrowser(token), url.Values{}).header.Get("Location"), "/console/users/"+bob+"?done=disabled")
	equal(t, "state", state(), "disabled")

	// Operations refuse what a page does not offer.
	c.want(t, 200, "", "PATCH", "/api/v1/groups/"+group, object{"scopes": []string{"users:read", "groups:read"}})
	for target, form := range map[string]url.Values{"/console/users/" + bob + "/enable": {}, "/console/groups/" + group: {"user": {bob}}, "/console/groups/" + group + "/remove": {"user": {ann}}} {
		p := c.visit(t, "POST", target, asBrowser(token), form)
		equal(t, target, []any{p.status, strings.Contains(p.html, ":write, which you do not have")}, []any{403, true})
	}
	equal(t, "state", state(), "disabled")
	if p := get("/console/users/"+bob, token); p.status != 200 || strings.Contains(p.html, "<form") {
		t.Errorf("a page offers what the person may not do: %d\n%s", p.status, p.html)
	}

	// What ends the session ends the console.
	c.want(t, 200, "", "POST", "/api/v1/users/"+ann+"/disable", nil)
	signInFirst("a disabled user", get("/console", token), "/console")
	c.want(t, 200, "", "POST", "/api/v1/users/"+ann+"/enable", nil)
	token = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	equal(t, "in", get("/console", token).status, 200)
	c.with(token).want(t, 204, "", "POST", authPath+"/logout", nil)
	signInFirst("signed out", get("/console", token), "/console")

	// A second factor that the tenant requires comes first.
	c.want(t, 200, "", "PATCH", "/api/v1/settings", object{"mfa_policy": object{"mode": "required"}})
	p = c.visit(t, "POST", "/auth/sign-in", nil, url.Values{"email": {"ann@example.com"}, "password": {secret}, "next": {"/console"}})
	equal(t, "enrol", get("/console", cookieOf(p)).header.Get("Location"), "/account/security?done=enrol&next=%2Fconsole")
}
