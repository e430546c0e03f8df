package api_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// controlConsoleIsClosed: who gets into the console of the control plane, and what a browser cannot be
// made to do there. That it works is shown in a browser (cmd/stonetown).
func controlConsoleIsClosed(t *testing.T, w *world, c *client) {
	const xss = `"><script>alert(1)</script>`
	ann, _ := w.console(t, c, "ann")
	bob, bobs := w.console(t, c, "bob")
	eve, _ := w.console(t, c, "eve")
	for _, one := range []*client{ann, bob, eve} {
		steppedUp(t, one)
	}
	org := organization(t, ann, c.name())
	w.join(t, ann, org, bob, bobs, "viewer")
	ann.want(t, 200, "", "PATCH", org, object{"name": xss})
	tenant := strings.TrimPrefix(ann.want(t, 201, "", "POST", org+"/tenants", object{"slug": c.name() + "-1", "name": xss}).header.Get("Location"), "/api/v1")
	account := ann.want(t, 201, "", "POST", org+"/service-accounts", object{"name": xss, "role": "viewer"})
	robot := strings.TrimPrefix(account.header.Get("Location"), "/api/v1")
	invited := strings.TrimPrefix(ann.want(t, 201, "", "POST", org+"/invitations", object{"email": "dan." + c.name() + "@example.com", "role": "viewer"}).header.Get("Location"), "/api/v1")
	var owner, viewer string
	for _, item := range ann.want(t, 200, "", "GET", org+"/members", nil).list() {
		m := item.(object)
		path := strings.TrimPrefix(org, "/api/v1") + "/members/" + m["id"].(string)
		if m["role"] == "owner" {
			owner = path
		} else {
			viewer = path
		}
	}
	page := "/console" + strings.TrimPrefix(org, "/api/v1")
	get := func(who *client, target string) shown { return who.visit(t, "GET", target, asBrowser(who.token), nil) }
	post := func(who *client, target string, form url.Values) shown {
		return who.visit(t, "POST", target, asBrowser(who.token), form)
	}
	signInFirst := func(what string, p shown, target string) {
		t.Helper()
		equal(t, what, []any{p.status, p.header.Get("Location")}, []any{303, "/auth/sign-in?next=" + url.QueryEscape(target)})
	}

	// Only a session of the control plane opens it, and opens nothing else.
	signInFirst("no session", ann.visit(t, "GET", page+"/tenants?state=active", nil, nil), page+"/tenants?state=active")
	member(t, c, "ann@example.com")
	ofTenant := signIn(t, c, "ann@example.com", secret, "complete").data()
	for what, token := range map[string]any{"a session of a tenant": ofTenant["session_token"], "a token of a tenant": ofTenant["access_token"]} {
		signInFirst(what, ann.visit(t, "GET", page, asBrowser(token.(string)), nil), page)
	}
	machine := w.token(t, ann.with(""), application{account.data()["client_id"].(string), account.data()["client_secret"].(string)})
	equal(t, "a service account is no person", ann.visit(t, "GET", page, asBrowser(machine), nil).status, 403)
	signInFirst("at a tenant", c.visit(t, "GET", "/console", asBrowser(ann.token), nil), "/console")
	equal(t, "not at a tenant", c.visit(t, "GET", page, asBrowser(ann.token), nil).status, 404)
	equal(t, "pages of tenants", get(ann, "/console/users").status, 404)

	equal(t, "the only organisation", get(ann, "/console").header.Get("Location"), page)
	equal(t, "no organisation", get(eve, "/console").header.Get("Location"), "/console/organizations")
	targets := map[string]int{
		"/console/organizations": 200, "/console/organizations/new": 200, "/console/organizations?cursor=" + url.QueryEscape(xss): 400, "/console/organizations/left": 200,
		page: 200, page + "?done=" + url.QueryEscape(xss): 200, page + "/edit": 200,
		page + "/tenants": 200, page + "/tenants?state=" + url.QueryEscape(xss): 400, page + "/tenants?cursor=x": 400, page + "/tenants/new": 200, page + "/tenants/tnt_none": 404, page + "/tenants/" + url.PathEscape(xss): 404, page + "/tenants/..%2Fmembers": 404,
		"/console" + tenant: 200, "/console" + tenant + "/edit": 200, "/console" + tenant + "/suspend": 200, "/console" + tenant + "/resume": 200, "/console" + tenant + "/decommission": 200, "/console" + tenant + "/open-console": 200,
		page + "/members": 200, page + "/members?cursor=x": 400, "/console" + viewer: 200, "/console" + viewer + "/edit": 200, "/console" + viewer + "/remove": 200, page + "/members/" + url.PathEscape(xss): 404,
		page + "/invitations": 200, page + "/invitations?state=" + url.QueryEscape(xss): 400, page + "/invitations/new": 200, "/console" + invited: 200, "/console" + invited + "/resend": 200, "/console" + invited + "/revoke": 200,
		page + "/service-accounts": 200, page + "/service-accounts/new": 200, "/console" + robot: 200, "/console" + robot + "/edit": 200, "/console" + robot + "/rotate-secret": 200, "/console" + robot + "/delete": 200,
		page + "/events": 200, page + "/events?since=" + url.QueryEscape(xss): 400, page + "/events?actor=" + url.QueryEscape(xss) + "&type=" + url.QueryEscape(xss): 200,
		"/console/organizations/" + url.PathEscape(xss): 404, "/console/organizations/..%2F..": 404,
	}
	for target, status := range targets {
		p := get(ann, target)
		equal(t, target, p.status, status)
		to := "" // the host to which the form of the page redirects
		if strings.HasSuffix(target, "/open-console") {
			to = " https://" + c.name() + "-1.test"
		}
		if policy := p.header.Get("Content-Security-Policy"); policy != "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'"+to+"; frame-ancestors 'none'; base-uri 'none'" ||
			p.header.Get("X-Frame-Options") != "DENY" || p.header.Get("Referrer-Policy") != "no-referrer" || p.header.Get("Cache-Control") != "no-store" || p.header.Get("Set-Cookie") != "" {
			if status != 404 || !strings.HasPrefix(policy, "default-src 'self'") { // a page that does not exist is none of the console
				t.Errorf("%s: %v", target, p.header)
			}
		}
		if strings.Contains(p.html, "<script") || strings.Contains(p.html, "style=") || strings.Contains(p.html, "onclick") || strings.Contains(p.html, ann.token) || secrets.MatchString(p.html) {
			t.Errorf("%s holds what it was given as it is, something inline, or a secret:\n%s", target, p.html)
		}
		// To a person of no organisation, none of it exists.
		if strings.HasPrefix(target, page) {
			p := get(eve, target)
			if p.status != 404 || strings.Contains(p.html, bobs) || strings.Contains(p.html, "alert(1)") {
				t.Errorf("%s shows another person: %d\n%s", target, p.status, p.html)
			}
		}
	}
	p := get(ann, page+"/events/events.csv?type=organization.updated")
	equal(t, "CSV", []any{p.header.Get("Content-Type"), p.header.Get("Content-Disposition"), strings.Count(p.html, "\n")}, []any{"text/csv; charset=utf-8", `attachment; filename="events.csv"`, 2})
	p = get(ann, page+"/events/events.jsonl")
	equal(t, "JSON lines", []any{p.status, strings.Contains(p.html, `"type":"service_account.created"`)}, []any{200, true})
	equal(t, "a bad filter", get(ann, page+"/events/events.csv?since=now").status, 400)
	equal(t, "method", ann.visit(t, "DELETE", page, asBrowser(ann.token), nil).status, 405)
	equal(t, "too large", post(ann, page+"/edit", url.Values{"name": {long(70_000)}}).status, 413)

	forms := map[string]url.Values{
		page + "/edit": {"name": {"Evil"}}, page + "/tenants/new": {"name": {"Evil"}, "slug": {c.name() + "-evil"}, "environment": {"production"}},
		"/console" + tenant + "/edit": {"name": {"Evil"}}, "/console" + tenant + "/suspend": {}, "/console" + tenant + "/resume": {}, "/console" + tenant + "/open-console": {}, "/console" + tenant + "/decommission": {"confirm": {c.name() + "-1"}},
		"/console" + owner + "/edit": {"role": {"viewer"}, "version": {"owner"}}, "/console" + owner + "/remove": {}, "/console" + viewer + "/edit": {"role": {"owner"}, "version": {"viewer"}},
		page + "/invitations/new": {"email": {"evil@example.com"}, "role": {"owner"}}, "/console" + invited + "/resend": {}, "/console" + invited + "/revoke": {},
		page + "/service-accounts/new": {"name": {"Evil"}, "role": {"owner"}}, "/console" + robot + "/edit": {"name": {"Evil"}, "role": {"owner"}}, "/console" + robot + "/rotate-secret": {}, "/console" + robot + "/delete": {},
	}
	leave := url.Values{"organization": {strings.TrimPrefix(org, orgsPath+"/")}, "member": {owner[strings.LastIndex(owner, "/")+1:]}}
	before := len(ann.want(t, 200, "", "GET", org+"/events?limit=250", nil).list())
	for target, form := range forms {
		for _, header := range []http.Header{{"Sec-Fetch-Site": {"cross-site"}}, {"Sec-Fetch-Site": {"same-site"}}, {"Origin": {"https://evil.test"}}} {
			header["Cookie"] = []string{"__Host-sid=" + ann.token}
			equal(t, "from another site", ann.visit(t, "POST", target, header, form).status, 403)
		}
		equal(t, "by a viewer "+target, post(bob, target, form).status, 403)
		equal(t, "by another "+target, post(eve, target, form).status, 404)
	}
	equal(t, "another leaves", post(eve, "/console/organizations/left", leave).status, 404)
	equal(t, "a viewer removes the owner", post(bob, "/console/organizations/left", leave).status, 403)
	equal(t, "nothing has happened", len(ann.want(t, 200, "", "GET", org+"/events?limit=250", nil).list()), before)
	p = get(bob, "/console"+tenant)
	if strings.Contains(p.html, `method="post"`) || strings.Contains(p.html, "/suspend") || strings.Contains(p.html, "/decommission") || strings.Contains(p.html, "/open-console") || strings.Contains(p.html, tenant+"/edit") {
		t.Errorf("a page offers what a viewer may not do:\n%s", p.html)
	}

	// An admin does not give the role owner, and is not offered it.
	ann.want(t, 200, "", "PATCH", "/api/v1"+viewer, object{"role": "admin"})
	equal(t, "an admin makes an owner", post(bob, page+"/invitations/new", url.Values{"email": {"evil@example.com"}, "role": {"owner"}}).status, 403)
	if p := get(bob, page+"/invitations/new"); !strings.Contains(p.html, `<option value="admin">`) || strings.Contains(p.html, `<option value="owner">`) {
		t.Errorf("an admin is offered\n%s", p.html)
	}

	// A form that is sent twice acts once, and so does that of a person who leaves.
	twice := func(who *client, target string, form url.Values) (first, second shown) {
		form.Set("once", "a random value")
		return post(who, target, form), post(who, target, form)
	}
	first, second := twice(ann, page+"/tenants/new", url.Values{"name": {"Two"}, "slug": {c.name() + "-2"}, "environment": {"production"}})
	key := func(p shown) string { return secrets.FindString(p.html) }
	if first.status != 200 || second.status != 200 || key(first) == "" || key(first) != key(second) {
		t.Errorf("a tenant that is created twice: %d, %d\n%s", first.status, second.status, second.html)
	}
	p = post(ann, page+"/tenants/new", url.Values{"name": {"Three"}, "slug": {c.name() + "-3"}, "environment": {"production"}, "once": {"a random value"}})
	equal(t, "with other values", []any{p.status, strings.Contains(p.html, "was sent before, with other values")}, []any{422, true})
	first, second = twice(ann, "/console"+tenant+"/suspend", url.Values{})
	equal(t, "suspended", []any{first.header.Get("Location"), second.header.Get("Location")}, []any{"/console" + tenant + "?done=suspended", "/console" + tenant + "?done=suspended"})
	first, second = twice(ann, "/console"+robot+"/delete", url.Values{})
	equal(t, "deleted", []any{first.status, second.status, second.header.Get("Location")}, []any{303, 303, page + "/service-accounts?done=account-deleted"})
	leave.Set("member", viewer[strings.LastIndex(viewer, "/")+1:])
	first, second = twice(bob, "/console/organizations/left", leave)
	equal(t, "left", []any{first.header.Get("Location"), second.header.Get("Location")}, []any{"/console/organizations?done=left", "/console/organizations?done=left"})
	equal(t, "gone", get(bob, page).status, 404)

	// What ends the session ends the console.
	ann.want(t, 204, "", "POST", authPath+"/logout", nil)
	signInFirst("signed out", get(ann, page), page)
}
