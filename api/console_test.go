package api_test

import (
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
)

// consoleIsClosed: who gets into the console, and what a browser cannot be made to do there. That
// it works is shown in a browser (cmd/stonetown).
func consoleIsClosed(t *testing.T, w *world, c *client) {
	const xss = `"><script>alert(1)</script>`
	ann := member(t, c, "ann@example.com")
	group := c.want(t, 201, "", "POST", "/api/v1/groups", object{"slug": "admins", "name": xss, "description": xss, "scopes": []string{"users:read", "users:write", "groups:read", "groups:write", "resources:read", "resources:write", "applications:read", "applications:write", "webhooks:read", "webhooks:write"}}).data()["id"].(string)
	app := c.want(t, 201, "", "POST", "/api/v1/applications", object{"name": xss, "description": xss, "type": "spa", "redirect_uris": []string{"https://x.example.com/"}}).data()["id"].(string)
	hook, _ := subscribe(t, c, "https://hooks.example.com/x", object{"name": xss, "description": xss}, "*")
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
		"/console/applications": 200, "/console/applications?type=" + url.QueryEscape(xss): 400, "/console/applications?q=" + url.QueryEscape(xss): 200, "/console/applications/" + app: 200,
		"/console/applications/" + app + "/disable": 200, "/console/applications/" + url.PathEscape(xss): 404,
		"/console/webhooks": 200, "/console/webhooks?state=" + url.QueryEscape(xss): 400, "/console/webhooks/" + hook: 200, "/console/webhooks/" + hook + "?status=" + url.QueryEscape(xss): 400,
		"/console/webhooks/" + url.PathEscape(xss): 404,
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
		for target, form := range map[string]url.Values{"/console/users/" + bob + "/disable": {}, "/console/groups/" + group: {"user": {bob}}, "/console/groups/" + group + "/remove": {"user": {ann}}, "/console/applications/" + app + "/disable": {}, "/console/webhooks/" + hook + "/test": {}} {
			equal(t, "from another site", c.visit(t, "POST", target, header, form).status, 403)
		}
	}
	get("/console/users/"+bob+"/disable", token)
	get("/console/users/"+bob+"/enable", token)
	equal(t, "state", state(), "active")
	equal(t, "disabled", c.visit(t, "POST", "/console/users/"+bob+"/disable", asBrowser(token), url.Values{}).header.Get("Location"), "/console/users/"+bob+"?done=disabled")
	equal(t, "state", state(), "disabled")

	// Operations refuse what a page does not offer.
	c.want(t, 200, "", "PATCH", "/api/v1/groups/"+group, object{"scopes": []string{"users:read", "groups:read", "applications:read", "webhooks:read"}})
	for target, form := range map[string]url.Values{
		"/console/applications/" + app + "/disable": {}, "/console/webhooks/" + hook + "/test": {}, "/console/webhooks/" + hook + "/replay": {}, "/console/webhooks/" + hook + "/redeliver": {"delivery": {"dlv_none"}},
		"/console/users/" + bob + "/enable": {}, "/console/groups/" + group: {"user": {bob}}, "/console/groups/" + group + "/remove": {"user": {ann}},
	} {
		p := c.visit(t, "POST", target, asBrowser(token), form)
		equal(t, target, []any{p.status, strings.Contains(p.html, ":write, which you do not have")}, []any{403, true})
	}
	equal(t, "state", state(), "disabled")
	for _, target := range []string{"/console/users/" + bob, "/console/applications/" + app, "/console/webhooks/" + hook} {
		if p := get(target, token); p.status != 200 || strings.Contains(p.html, `method="post"`) || strings.Contains(p.html, "/disable") {
			t.Errorf("a page offers what the person may not do: %d\n%s", p.status, p.html)
		}
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

// consoleExplains: pages of the console decide as checks do, and what they mark leads from the
// resource to the subject.
func consoleExplains(t *testing.T, _ *world, c *client) {
	const hostile = `"><script>alert(1)</script>'#viewer@user:x`
	seed := time.Now().UnixNano()
	t.Log("seed ", seed)
	random := rand.New(rand.NewPCG(uint64(seed), 0))
	c.want(t, 201, "", "POST", "/api/v1/resource-types", object{"name": "item", "relations": []object{
		{"name": "parent", "rewrites": []object{}, "subjects": []string{"item"}},
		{"name": "owner", "rewrites": []object{}},
		{"name": "banned", "rewrites": []object{}},
		{"name": "open", "rewrites": []object{}, "subjects": []string{"user:*"}},
		{"name": "editor", "rewrites": []object{{"kind": "this"}, {"kind": "computed", "relation": "owner"}, {"kind": "self"}}},
		{"name": "trusted", "rewrites": []object{{"kind": "tuple_to_userset", "tupleset": "parent", "computed": "trusted", "mode": "all"}, {"kind": "computed", "relation": "owner"}}},
		{"name": "viewer", "rewrites": []object{{"kind": "exclusion", "base": object{"kind": "union", "children": []object{
			{"kind": "this"}, {"kind": "computed", "relation": "editor"}, {"kind": "computed", "relation": "open"}, {"kind": "tuple_to_userset", "tupleset": "parent", "computed": "viewer"},
		}}, "subtract": object{"kind": "computed", "relation": "banned"}}}},
		{"name": "publisher", "rewrites": []object{{"kind": "intersection", "children": []object{{"kind": "computed", "relation": "viewer"}, {"kind": "computed", "relation": "trusted"}}}}},
	}})
	items := []string{"a", "b", "c", hostile}
	people := []string{"user:ann", "user:bob", "user:" + hostile, "item:a", "group:eng", "item:c#owner"}
	one := func(list []string) string { return list[random.IntN(len(list))] }
	write := func(resource object, relation string, subject object) {
		c.want(t, 200, "", "POST", "/api/v1/resources/relations/bulk", object{"operations": []object{{"op": "create", "resource": resource, "relation": relation, "subject": subject}}})
	}
	part := func(name string) object {
		if name == "item:c#owner" {
			return object{"type": "item", "id": "c", "relation": "owner"}
		}
		typ, id, _ := strings.Cut(name, ":")
		return object{"type": typ, "id": id}
	}
	write(object{"type": "group", "external_id": "eng"}, "member", part("user:bob"))
	for i, item := range items {
		write(object{"type": "item", "external_id": item}, "owner", part(one(people[:5])))
		if i > 0 { // no cycle: an exclusion in one has no answer
			write(object{"type": "item", "external_id": item}, "parent", part("item:"+items[random.IntN(i)]))
		}
		for range 2 {
			write(object{"type": "item", "external_id": item}, one([]string{"owner", "editor", "viewer", "viewer", "banned"}), part(one(people[:5])))
		}
	}
	write(object{"type": "item", "external_id": "b"}, "open", part("user:*"))
	write(object{"type": "item", "external_id": "a"}, "viewer", part("item:c#owner"))

	ann := member(t, c, "ann@example.com")
	group := c.want(t, 201, "", "POST", "/api/v1/groups", object{"slug": "readers", "name": "Readers", "scopes": []string{"resources:read"}}).data()["id"].(string)
	c.want(t, 201, "", "POST", "/api/v1/groups/"+group+"/members", object{"user_id": ann})
	token := signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	allowed := 0
	for _, item := range items {
		for _, person := range people {
			for _, action := range []string{"view", "edit", "trusted", "publisher"} {
				query := url.Values{"subject": {person}, "action": {action}, "resource": {"item:" + item}}
				if strings.HasSuffix(person, "#viewer@user:x") {
					query.Set("subject", `{"type":"user","id":`+strconv.Quote(hostile)+`}`)
				}
				a := c.want(t, 200, "", "POST", "/api/v1/resources/check", object{"subject": part(person), "action": action, "resource": object{"type": "item", "external_id": item}, "debug": true}).data()
				p := c.visit(t, "GET", "/console/access?"+query.Encode(), asBrowser(token), nil)
				yes := strings.Contains(p.html, "✓ Allowed")
				if p.status != 200 || yes != (a["allowed"] == true) || yes == strings.Contains(p.html, "✗ Denied") || strings.Contains(p.html, "<script") {
					t.Fatalf("%s %s %s is %v, page: %d\n%s", person, action, item, a, p.status, p.html)
				}
				marked := strings.Count(p.html, `part of the proof`)
				if yes != strings.Contains(p.html, `<ul class="tree"><li><span class="proof">`) {
					t.Errorf("%s %s %s is %v, and not marked so:\n%s", person, action, item, a, p.html)
				}
				if !yes && marked > 0 {
					t.Errorf("%s %s %s is denied, and %d nodes are marked", person, action, item, marked)
				}
				if !yes {
					continue
				}
				allowed++
				// All relations of the proof are marked, and no other.
				tuples := map[string]bool{}
				for _, r := range a["reasons"].([]any) {
					step := r.(object)
					if step["rewrite"] == "this" && !strings.Contains(step["text"].(string), "is the set of its own") {
						tuples[step["via"].(string)] = true
					}
				}
				direct := strings.Count(p.html, "part of the proof: </span><em>direct</em>") + strings.Count(p.html, "part of the proof: </span><em>and direct</em>")
				if direct < len(tuples) {
					t.Errorf("%s %s %s: %d direct relations are marked, the proof has %v\n%s", person, action, item, direct, tuples, p.html)
				}
			}
		}
	}
	if allowed < 5 {
		t.Errorf("%d decisions are allowed", allowed)
	}
	// A relation that has expired since the last write does not hold, and neither does it by the link.
	soon := time.Now().Add(time.Second).UTC().Format(time.RFC3339Nano)
	c.want(t, 200, "", "POST", "/api/v1/resources/relations/bulk", object{"operations": []object{{
		"op": "create", "resource": object{"type": "item", "external_id": "a"}, "relation": "editor", "subject": object{"type": "user", "id": "zed"}, "expires_at": soon,
	}}})
	question := object{"subject": object{"type": "user", "id": "zed"}, "action": "edit", "resource": object{"type": "item", "external_id": "a"}}
	for c.want(t, 200, "", "POST", "/api/v1/resources/check", question).data()["allowed"] == true {
		time.Sleep(50 * time.Millisecond)
	}
	expired := c.visit(t, "GET", "/console/access?subject=user:zed&action=edit&resource=item:a", asBrowser(token), nil)
	_, at, _ := strings.Cut(expired.html, "Everything here is the answer at <code>")
	at, _, _ = strings.Cut(at, "</code>")
	for range 2 {
		if _, err := time.Parse(time.RFC3339, at); err != nil || !strings.Contains(expired.html, "✗ Denied") || !strings.Contains(expired.html, "this relation expired on") {
			t.Errorf("at %s: %v\n%s", at, err, expired.html)
		}
		expired = c.visit(t, "GET", "/console/access?subject=user:zed&action=edit&resource=item:a&at="+at, asBrowser(token), nil)
	}

	// A relation with a hostile id is added, found, compared and removed.
	c.want(t, 200, "", "PATCH", "/api/v1/groups/"+group, object{"scopes": []string{"resources:read", "resources:write"}})
	relation := url.Values{"resource": {"item:new"}, "relation": {"editor"}, "subject": {`{"type":"user","id":` + strconv.Quote(hostile) + `}`}}
	found := "/console/relations?" + url.Values{"resource_type": {"item"}, "external_id": {"new"}}.Encode()
	post := func(page string, form url.Values) shown {
		return c.visit(t, "POST", "/console/relations/"+page, asBrowser(token), form)
	}
	equal(t, "add", post("add", relation).header.Get("Location"), "/console/relations?done=added&external_id=new&resource_type=item")
	p := c.visit(t, "GET", found, asBrowser(token), nil)
	equal(t, "found", []any{p.status, strings.Count(p.html, "/console/relations/remove?"), strings.Contains(p.html, "<script")}, []any{200, 1, false})
	p = c.visit(t, "GET", "/console/relations/remove?"+relation.Encode(), asBrowser(token), nil)
	equal(t, "compare", []any{p.status, strings.Contains(p.html, "These lose"), strings.Contains(p.html, "<script")}, []any{200, true, false})
	equal(t, "a link removes nothing", strings.Count(c.visit(t, "GET", found, asBrowser(token), nil).html, "/console/relations/remove?"), 1)
	equal(t, "from another site", c.visit(t, "POST", "/console/relations/remove", http.Header{"Sec-Fetch-Site": {"cross-site"}, "Cookie": {"__Host-sid=" + token}}, relation).status, 403)
	equal(t, "remove", post("remove", relation).header.Get("Location"), "/console/relations?done=removed&external_id=new&resource_type=item")
	p = post("remove", relation)
	equal(t, "removed before", []any{p.status, strings.Contains(p.html, `role="alert">Operations/0`) || strings.Contains(p.html, `role="alert" hidden`)}, []any{404, false})
	for page, form := range map[string]url.Values{
		"add":    {"resource": {"none"}, "relation": {"editor"}, "subject": {"user:" + hostile}},
		"remove": {"resource": {"item:a"}, "relation": {""}, "subject": {"user:ann"}},
	} {
		equal(t, page, post(page, form).status, 400)
	}
	p = post("add", url.Values{"resource": {"group:" + group}, "relation": {"member"}, "subject": {"user:" + ann}}) // it would give scopes
	equal(t, "a membership", []any{p.status, strings.Contains(p.html, `value="group:`+group+`"`)}, []any{403, true})

	for target, status := range map[string]int{
		"/console/relations": 200, "/console/relations?relation=viewer": 400, "/console/relations?resource_type=" + url.QueryEscape(hostile): 404, "/console/relations?resource_type=item&cursor=x": 400, "/console/relations/remove?resource=x": 400, "/console/relations/add?subject=" + url.QueryEscape(hostile): 200,
		"/console/relations/remove?resource=item:a&relation=viewer&subject=user:a&action=" + url.QueryEscape(hostile): 400,
		"/console/access": 200, "/console/access?subject=" + url.QueryEscape(hostile): 400, "/console/access?subject=user:a&action=view&resource=" + url.QueryEscape("item:"+hostile+"2"): 404,
		"/console/access?subject=user:a&action=view&resource=item:a&at=" + url.QueryEscape(hostile): 400, "/console/access?subject=user:a&action=view&resource=item:a&context=" + url.QueryEscape(hostile): 400,
		"/console/access?subject=user:a&action=" + url.QueryEscape(hostile) + "&resource=item:a": 400, "/console/access?subject=user:a&action=view&resource=item:a&at=2020-01-01T00:00:00Z": 404,
		"/console/access/subjects": 200, "/console/access/subjects?subject_type=" + url.QueryEscape(hostile) + "&action=view&resource=item:a": 400, "/console/access/subjects?subject_type=user&action=view&resource=item:a": 200,
		"/console/access/subjects?subject_type=user&action=view": 400, "/console/access/resources": 200, "/console/access/resources?subject=user:ann&action=view&type=item": 200, "/console/access/resources?subject=user:ann&action=view&type=none": 404,
		"/console/access/resources?subject=user:ann&action=view&type=item&cursor=x": 400, "/console/users": 403,
	} {
		p := c.visit(t, "GET", target, asBrowser(token), nil)
		equal(t, target, []any{p.status, strings.Contains(p.html, "<script"), strings.Contains(p.html, "Go to your account")}, []any{status, false, false})
	}
}
