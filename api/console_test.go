package api_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"html"
	"io"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"stonetown/identity/userimport"
)

// consoleIsClosed: who gets into the console, and what a browser cannot be made to do there. That
// it works is shown in a browser (cmd/stonetown).
func consoleIsClosed(t *testing.T, w *world, c *client) {
	const xss = `"><script>alert(1)</script>`
	ann := member(t, c, "ann@example.com")
	group := c.want(t, 201, "", "POST", "/api/v1/groups", object{"slug": "admins", "name": xss, "description": xss, "scopes": []string{"users:read", "users:write", "groups:read", "groups:write", "resources:read", "resources:write", "applications:read", "applications:write", "webhooks:read", "webhooks:write", "settings:read", "settings:write"}}).data()["id"].(string)
	app := c.want(t, 201, "", "POST", "/api/v1/applications", object{"name": xss, "description": xss, "type": "spa", "redirect_uris": []string{"https://x.example.com/"}}).data()["id"].(string)
	hook, _ := subscribe(t, c, "https://hooks.example.com/x", object{"name": xss, "description": xss}, "*")
	trusted := c.want(t, 201, "", "POST", "/api/v1/trusted-issuers", object{"issuer": "https://issuer.example.com", "description": xss}).data()["id"].(string)
	c.want(t, 200, "", "PATCH", "/api/v1/users/"+ann, object{"name": xss})
	feed := c.want(t, 201, "", "POST", threatsPath, object{"name": xss, "kind": "address", "source": "upload", "mode": "log"}).data()["id"].(string)
	signed := signIn(t, c, "ann@example.com", secret, "complete").data()
	token := signed["session_token"].(string)
	steppedUp(t, c.with(token))
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
		"/console/groups/new": 200, "/console/groups/" + group + "/edit": 200, "/console/groups/" + group + "/delete": 200, "/console/groups/" + url.PathEscape(xss) + "/edit": 404, "/console/groups/" + url.PathEscape(xss) + "/delete": 404,
		"/console/security/scopes": 200, "/console/security/scopes?cursor=" + url.QueryEscape(xss): 400, "/console/security/scopes/new": 200, "/console/security/scopes/" + url.PathEscape(xss) + "/edit": 404, "/console/security/scopes/" + url.PathEscape(xss) + "/delete": 404,
		"/console/applications": 200, "/console/applications?type=" + url.QueryEscape(xss): 400, "/console/applications?q=" + url.QueryEscape(xss): 200, "/console/applications/" + app: 200,
		"/console/applications/" + app + "/disable": 200, "/console/applications/" + url.PathEscape(xss): 404,
		"/console/applications/new": 200, "/console/applications/new?type=" + url.QueryEscape(xss): 200, "/console/applications/new?type=saml": 200, "/console/applications/" + app + "/edit": 200, "/console/applications/" + app + "/rotate-secret": 200,
		"/console/applications/" + app + "/delete": 200, "/console/applications/" + app + "/claims": 200, "/console/applications/" + app + "/claims/save?user=" + url.QueryEscape(xss): 200, "/console/applications/" + url.PathEscape(xss) + "/edit": 404,
		"/console/webhooks": 200, "/console/webhooks?state=" + url.QueryEscape(xss): 400, "/console/webhooks/" + hook: 200, "/console/webhooks/" + hook + "?status=" + url.QueryEscape(xss): 400,
		"/console/webhooks/" + url.PathEscape(xss): 404,
		"/console/webhooks/new":                    200, "/console/webhooks/event-types": 200, "/console/webhooks/event-types?cursor=" + url.QueryEscape(xss): 400, "/console/webhooks/" + hook + "/edit": 200, "/console/webhooks/" + hook + "/disable": 200,
		"/console/webhooks/" + hook + "/delete": 200, "/console/webhooks/" + hook + "/rotate-secret": 200, "/console/webhooks/" + hook + "/drop?entry=" + url.QueryEscape(xss): 200, "/console/webhooks/" + url.PathEscape(xss) + "/edit": 404,
		"/console/search": 200, "/console/search?search=" + url.QueryEscape(xss): 200, "/console/search?search=group:" + group: 200, "/console/search?search=" + strings.Repeat("%C3%A9", 150): 400,
		"/console/tests": 200, "/console/tests/new": 200, "/console/tests/sets/none": 404, "/console/tests/sets/" + url.PathEscape(xss): 404, "/console/audit": 403, "/console/audit/1": 403, "/console/connections": 403,
		"/console/users/imports": 200, "/console/users/imports?cursor=" + url.QueryEscape(xss): 400, "/console/users/imports/upload": 200, "/console/users/imports/" + url.PathEscape(xss): 404, "/console/users/imports/job_none/cancel": 404, "/console/users/imports/job_none/errors.csv": 404,
		"/console/security": 200, "/console/security/policies": 200, "/console/security/policies/passwords": 200, "/console/security/policies/" + url.PathEscape(xss): 200, "/console/security/keys": 200, "/console/security/keys?cursor=" + url.QueryEscape(xss): 400, "/console/security/keys/rotate": 200, "/console/security/keys/replace": 200,
		"/console/security/certificates": 200, "/console/security/certificates?cursor=" + url.QueryEscape(xss): 400, "/console/security/certificates/identity_provider/rotate": 200, "/console/security/certificates/service_provider/replace": 200, "/console/security/certificates/" + url.PathEscape(xss) + "/replace": 404,
		"/console/security/threat-feeds": 200, "/console/security/threat-feeds/new": 200, "/console/security/threat-feeds/" + feed: 200, "/console/security/threat-feeds/" + feed + "?value=" + url.QueryEscape(xss): 400, "/console/security/threat-feeds/" + feed + "/edit": 200, "/console/security/threat-feeds/" + feed + "/delete": 200,
		"/console/security/threat-feeds/" + url.PathEscape(xss): 404, "/console/security/threat-feeds/" + url.PathEscape(xss) + "/delete": 404, "/console/confirmed": 200,
		"/console/security/issuers": 200, "/console/security/issuers/new": 200, "/console/security/issuers/new?preset=" + url.QueryEscape(xss): 200, "/console/security/issuers/new?preset=kubernetes": 200, "/console/security/issuers/" + trusted: 200, "/console/security/issuers/" + trusted + "/edit": 200, "/console/security/issuers/" + trusted + "/disable": 200,
		"/console/security/issuers/" + trusted + "/delete": 200, "/console/security/issuers/" + url.PathEscape(xss): 404, "/console/security/issuers/" + url.PathEscape(xss) + "/delete": 404,
		"/console/model": 200, "/console/model?text=" + url.QueryEscape(xss) + "&renames=" + url.QueryEscape(xss) + "&questions=" + url.QueryEscape(xss) + "&revision=" + url.QueryEscape(xss): 200, "/console/model/apply": 200,
	} {
		p := get(target, token)
		equal(t, target, p.status, status)
		policy := p.header.Get("Content-Security-Policy")
		island := strings.HasPrefix(target, "/console/model")
		p.html = withoutIsland(p.html)
		if !strings.HasPrefix(policy, "default-src 'none'; style-src 'self';") || !strings.Contains(policy, "; script-src 'self'") || strings.Contains(policy, "connect-src 'self'") != island || strings.Contains(policy, "unsafe") || p.header.Get("X-Frame-Options") != "DENY" ||
			p.header.Get("Referrer-Policy") != "no-referrer" || p.header.Get("Cache-Control") != "no-store" || p.header.Get("Set-Cookie") != "" {
			t.Errorf("%s: %v", target, p.header)
		}
		if strings.Contains(p.html, "<script") || strings.Contains(p.html, "style=") || strings.Contains(p.html, "onclick") || strings.Contains(p.html, "eyJ") || strings.Contains(p.html, token) {
			t.Errorf("%s holds what it was given as it is, something inline, or a token:\n%s", target, p.html)
		}
	}
	if p := get("/console/applications/new?type=server", token); strings.Contains(p.html, "tls_client_auth") {
		t.Error("a server that gets no certificates of clients offers them")
	}
	equal(t, "style", c.visit(t, "GET", "/console/assets/console.css", nil, nil).header.Get("Content-Type"), "text/css; charset=utf-8")
	signInFirst("at the control plane", (&client{server: c.server, host: controlHost}).visit(t, "GET", "/console", asBrowser(token), nil), "/console")
	equal(t, "method", c.visit(t, "DELETE", "/console", asBrowser(token), nil).status, 405)
	equal(t, "too large", c.visit(t, "POST", "/console/groups/"+group, asBrowser(token), url.Values{"user": {long(70_000)}}).status, 413)

	// Forms come from the console only, and a link changes nothing.
	bob := member(t, c, "bob@example.com")
	state := func() any { return c.want(t, 200, "", "GET", "/api/v1/users/"+bob, nil).data()["state"] }
	for _, header := range []http.Header{{"Sec-Fetch-Site": {"cross-site"}}, {"Sec-Fetch-Site": {"same-site"}}, {"Origin": {"https://evil.test"}}} {
		header["Cookie"] = []string{"__Host-sid=" + token}
		for target, form := range map[string]url.Values{
			"/console/users/" + bob + "/disable": {}, "/console/groups/" + group: {"user": {bob}}, "/console/groups/" + group + "/remove": {"user": {ann}}, "/console/applications/" + app + "/disable": {}, "/console/applications/new?type=m2m": {"name": {"Evil"}}, "/console/applications/" + app + "/edit": {"name": {"Evil"}}, "/console/applications/" + app + "/rotate-secret": {}, "/console/applications/" + app + "/delete": {}, "/console/applications/" + app + "/claims/save": {"claims": {"[]"}}, "/console/webhooks/new": {"name": {"Evil"}, "url": {"https://evil.example.com"}, "events": {"*"}}, "/console/webhooks/" + hook + "/edit": {"url": {"https://evil.example.com"}}, "/console/webhooks/" + hook + "/disable": {}, "/console/webhooks/" + hook + "/enable": {}, "/console/webhooks/" + hook + "/delete": {}, "/console/webhooks/" + hook + "/rotate-secret": {}, "/console/webhooks/" + hook + "/drop": {"entries": {"dle_none"}}, "/console/webhooks/" + hook + "/test": {}, "/console/tests/new/save": {"name": {"evil"}, "text": {"tests: []"}}, "/console/connections/new?kind=saml": {"slug": {"evil"}}, "/console/model": {"text": {"- name: evil"}}, "/console/model/apply": {"text": {"- name: evil"}},
			"/console/security/policies/accounts": {"sign_up": {"open"}}, "/console/security/keys/rotate": {}, "/console/security/keys/replace": {}, "/console/security/certificates/identity_provider/replace": {}, "/console/security/issuers/new?preset=other": {"issuer": {"https://evil.example.com"}}, "/console/security/issuers/" + trusted + "/edit": {}, "/console/security/issuers/" + trusted + "/disable": {}, "/console/security/issuers/" + trusted + "/enable": {}, "/console/security/issuers/" + trusted + "/delete": {},
		} {
			equal(t, "from another site", c.visit(t, "POST", target, header, form).status, 403)
		}
	}
	get("/console/users/"+bob+"/disable", token)
	get("/console/users/"+bob+"/enable", token)
	equal(t, "state", state(), "active")
	equal(t, "disabled", c.visit(t, "POST", "/console/users/"+bob+"/disable", asBrowser(token), url.Values{}).header.Get("Location"), "/console/users/"+bob+"?done=disabled")
	equal(t, "state", state(), "disabled")

	// A text of the model is refused with what is wrong, and shown as it is.
	for text, status := range map[string]int{
		"": 200, "# nothing": 400, "- name: " + xss: 400, "- {name: a, nam: b}": 400, "- name: user": 400, "- name: [": 400, "a: &a [*a]": 400, "- name: a\n- name: a": 400, "- {name: a, relations: [{name: b, rewrites: [{kind: computed, relation: c}]}]}": 400,
		"- {name: a, description: '" + strings.ReplaceAll(xss, "'", "''") + "'}": 200, strings.Repeat("- {name: a}\n", 100_000): 413, "[" + strings.Repeat("[", 20_000): 400,
	} {
		p := c.visit(t, "POST", "/console/model", asBrowser(token), url.Values{"text": {text}, "questions": {""}})
		p.html = withoutIsland(p.html)
		equal(t, text[:min(len(text), 60)], []any{p.status, strings.Contains(p.html, "<script")}, []any{status, false})
		if status == 400 && !strings.Contains(p.html, `name="text" class="code" rows="24" spellcheck="false" autocapitalize="off" aria-invalid="true"`) {
			t.Errorf("%.60s is not marked", text)
		}
	}
	for field, text := range map[string]string{"renames": xss, "questions": "user:ann " + xss, "context": xss} {
		p := c.visit(t, "POST", "/console/model", asBrowser(token), url.Values{"text": {"- name: a"}, field: {text}})
		p.html = withoutIsland(p.html)
		equal(t, field, []any{p.status, strings.Contains(p.html, "<script"), strings.Contains(p.html, `id="`+field+`" name="`+field+`" rows="3" spellcheck="false" aria-invalid="true"`)}, []any{400, false, true})
	}
	// What is typed in a form of fields is shown as it is, with what is wrong. A person gives only scopes that they have.
	version := c.want(t, 200, "", "GET", "/api/v1/applications/"+app, nil).data()["updated_at"].(string)
	for target, form := range map[string]url.Values{
		"/console/applications/new?type=server":         {"name": {xss}, "description": {xss}, "redirect_uris": {xss}, "token_endpoint_auth_method": {xss}},
		"/console/applications/" + app + "/edit":        {"version": {version}, "name": {xss}, "jwks": {xss}, "redirect_uris": {xss}, "allowed_scopes": {"openid"}},
		"/console/applications/" + app + "/claims":      {"version": {version}, "claims": {xss}, "user": {xss}},
		"/console/applications/" + app + "/claims/save": {"version": {version}, "claims": {`[{"name": "<script>"}]`}, "user": {xss}},
	} {
		p := c.visit(t, "POST", target, asBrowser(token), form)
		p.html = withoutIsland(p.html)
		equal(t, target, []any{p.status, strings.Contains(p.html, "<script"), strings.Contains(p.html, `aria-invalid="true"`)}, []any{400, false, true})
	}
	for target, form := range map[string]url.Values{"/console/webhooks/new": {}, "/console/webhooks/" + hook + "/edit": {"version": {c.want(t, 200, "", "GET", "/api/v1/webhooks/subscriptions/"+hook, nil).data()["updated_at"].(string)}}} {
		form["name"], form["url"], form["events"], form["owners"] = []string{xss}, []string{xss}, []string{xss}, []string{`[{"type": "` + "<script>" + `"}]`}
		p := c.visit(t, "POST", target, asBrowser(token), form)
		p.html = withoutIsland(p.html)
		equal(t, target, []any{p.status, strings.Contains(p.html, "<script"), strings.Contains(p.html, `aria-invalid="true"`)}, []any{400, false, true})
	}
	for target, form := range map[string]url.Values{
		"/console/security/policies/passwords":            {"password_policy/min_length": {xss}},
		"/console/security/policies/limits":               {"rate_limits/page.ip": {xss}, "version": {versionOf(t, get("/console/security/policies", token).html, "limits")}},
		"/console/security/issuers/new?preset=other":      {"issuer": {xss}, "description": {xss}},
		"/console/security/issuers/" + trusted + "/edit":  {"description": {xss}, "jwks": {xss}},
		"/console/security/issuers/new?preset=kubernetes": {"issuer": {"https://k8s.example.com"}, "audience": {long(600) + xss}, "signing_algs": {"ES256"}},
	} {
		p := c.visit(t, "POST", target, asBrowser(token), form)
		equal(t, target, []any{p.status, strings.Contains(withoutIsland(p.html), "<script"), strings.Contains(p.html, `aria-invalid="true"`)}, []any{400, false, true})
	}
	p = c.visit(t, "POST", "/console/applications/new?type=m2m", asBrowser(token), url.Values{"name": {"Evil"}, "allowed_scopes": {"federation:write"}})
	equal(t, "a scope that the person lacks", []any{p.status, strings.Contains(p.html, "federation:write, which you do not have"), strings.Contains(p.html, `value="Evil"`)}, []any{403, true, true})
	typed := url.Values{"text": {"- name: " + long(5_000)}}
	signInFirst("no session, a long form", c.visit(t, "POST", "/console/model", http.Header{"Sec-Fetch-Site": {"same-origin"}}, typed), "/console/model")

	// Operations refuse what a page does not offer.
	c.want(t, 200, "", "PATCH", "/api/v1/groups/"+group, object{"scopes": []string{"users:read", "groups:read", "applications:read", "webhooks:read", "settings:read"}})
	for target, form := range map[string]url.Values{
		"/console/applications/" + app + "/disable": {}, "/console/applications/new?type=m2m": {"name": {"Evil"}}, "/console/applications/" + app + "/edit": {"name": {"Evil"}}, "/console/applications/" + app + "/rotate-secret": {}, "/console/applications/" + app + "/delete": {}, "/console/applications/" + app + "/claims/save": {"claims": {"[]"}},
		"/console/webhooks/new": {"name": {"Evil"}, "url": {"https://evil.example.com"}, "events": {"*"}}, "/console/webhooks/" + hook + "/edit": {"url": {"https://evil.example.com"}}, "/console/webhooks/" + hook + "/disable": {}, "/console/webhooks/" + hook + "/enable": {}, "/console/webhooks/" + hook + "/delete": {}, "/console/webhooks/" + hook + "/rotate-secret": {}, "/console/webhooks/" + hook + "/drop": {"entries": {"dle_none"}},
		"/console/webhooks/" + hook + "/test": {}, "/console/webhooks/" + hook + "/replay": {"all": {"yes"}}, "/console/webhooks/" + hook + "/redeliver": {"delivery": {"dlv_none"}},
		"/console/users/" + bob + "/enable": {}, "/console/groups/" + group: {"user": {bob}}, "/console/groups/" + group + "/remove": {"user": {ann}},
		"/console/model/apply": {"text": {"- name: a"}, "revision": {"x"}}, "/console/tests/new/save": {"name": {"evil"}, "text": {"tests: []"}}, "/console/tests/sets/evil/save": {"text": {"tests: []"}}, "/console/tests/sets/evil/delete": {},
		"/console/connections/new?kind=saml": {"slug": {"evil"}, "name": {"Evil"}}, "/console/connections/fed_none/edit": {}, "/console/connections/fed_none/enable": {}, "/console/connections/fed_none/disable": {}, "/console/connections/fed_none/delete": {},
		"/console/connections/fed_none/test": {}, "/console/connections/fed_none/mapping/save": {"attribute_mapping": {"{}"}},
		"/console/security/policies/accounts": {"sign_up": {"open"}}, "/console/security/keys/rotate": {}, "/console/security/keys/replace": {}, "/console/security/certificates/identity_provider/rotate": {}, "/console/security/certificates/identity_provider/replace": {},
		"/console/security/issuers/new?preset=other": {"issuer": {"https://evil.example.com"}}, "/console/security/issuers/" + trusted + "/edit": {"description": {"Evil"}}, "/console/security/issuers/" + trusted + "/disable": {}, "/console/security/issuers/" + trusted + "/enable": {}, "/console/security/issuers/" + trusted + "/delete": {},
	} {
		p := c.visit(t, "POST", target, asBrowser(token), form)
		equal(t, target, []any{p.status, strings.Contains(p.html, ":write, which you do not have")}, []any{403, true})
	}
	equal(t, "state", state(), "disabled")
	for _, target := range []string{
		"/console/users/" + bob, "/console/applications/" + app, "/console/webhooks/" + hook,
		"/console/security/policies", "/console/security/keys", "/console/security/certificates", "/console/security/issuers", "/console/security/issuers/" + trusted,
		"/console/security/threat-feeds", "/console/security/threat-feeds/" + feed,
	} {
		if p := get(target, token); p.status != 200 || strings.Contains(p.html, `method="post"`) || strings.Contains(p.html, "/disable") || strings.Contains(p.html, `class="button`) {
			t.Errorf("a page offers what the person may not do: %d\n%s", p.status, p.html)
		}
	}

	// What ends the session ends the console.
	c.want(t, 200, "", "POST", "/api/v1/users/"+ann+"/disable", nil)
	signInFirst("a disabled user", get("/console", token), "/console")
	c.want(t, 200, "", "POST", "/api/v1/users/"+ann+"/enable", nil)
	c.want(t, 200, "", "PATCH", "/api/v1/settings", object{"mfa_policy": object{"mode": "off"}})
	token = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	equal(t, "in", get("/console", token).status, 200)
	c.with(token).want(t, 204, "", "POST", authPath+"/logout", nil)
	signInFirst("signed out", get("/console", token), "/console")

	// A second factor that the tenant requires comes first.
	c.want(t, 200, "", "PATCH", "/api/v1/settings", object{"mfa_policy": object{"mode": "required"}})
	member(t, c, "dora@example.com")
	p = c.visit(t, "POST", "/auth/sign-in", nil, url.Values{"email": {"dora@example.com"}, "password": {secret}, "next": {"/console"}})
	equal(t, "enrol", get("/console", cookieOf(p)).header.Get("Location"), "/account/security?done=enrol&next=%2Fconsole")
}

// consoleActsOnce: forms that are sent twice, at once or by another session, and files.
func consoleActsOnce(t *testing.T, _ *world, c *client) {
	ann, bob := member(t, c, "ann@example.com"), member(t, c, "bob@example.com")
	group := c.want(t, 201, "", "POST", "/api/v1/groups", object{"slug": "admins", "name": "Admins", "scopes": []string{"applications:read", "applications:write", "users:read", "users:write"}}).data()["id"].(string)
	var sessions []string
	for _, user := range []string{ann, bob} {
		c.want(t, 201, "", "POST", "/api/v1/groups/"+group+"/members", object{"user_id": user})
	}
	for _, email := range []string{"ann@example.com", "bob@example.com"} {
		sessions = append(sessions, steppedUp(t, signedIn(t, c, email)).token)
	}
	shownSecret := regexp.MustCompile(`<pre id="secret" tabindex="0">(cs_[^<]+)</pre>`)
	const page = "/console/applications/new?type=server"
	create := func(token string, form url.Values) (status int, secret string) {
		t.Helper()
		p := c.visit(t, "POST", page, asBrowser(token), form)
		if found := shownSecret.FindStringSubmatch(p.html); found != nil {
			secret = found[1]
		}
		return p.status, secret
	}
	count := func() int { return len(c.want(t, 200, "", "GET", "/api/v1/applications?q=Once", nil).list()) }
	form := url.Values{"once": {"first"}, "name": {"Once"}, "redirect_uris": {"https://once.example.com/"}}
	secrets := make([]string, 8)
	var sending sync.WaitGroup
	for i := range secrets {
		sending.Go(func() { _, secrets[i] = create(sessions[0], form) })
	}
	sending.Wait()
	equal(t, "the secrets of all", slices.Compact(secrets), []string{secrets[0]})
	equal(t, "created by all", []any{count(), strings.HasPrefix(secrets[0], "cs_")}, []any{1, true})
	_, other := create(sessions[1], form)
	equal(t, "by another session", []any{count(), other != secrets[0]}, []any{2, true})

	form = url.Values{"once": {"second"}, "name": {"Once"}, "redirect_uris": {"http://once.example.com/"}}
	p := c.visit(t, "POST", page, asBrowser(sessions[0]), form)
	next := regexp.MustCompile(`name="once" value="([^"]+)"`).FindStringSubmatch(p.html)
	equal(t, "refused", []any{p.status, len(next), count()}, []any{400, 2, 2})
	form["once"], form["redirect_uris"] = next[1:], []string{"https://once.example.com/"}
	status, _ := create(sessions[0], form)
	equal(t, "corrected", []any{status, count()}, []any{200, 3})

	// A file that is sent twice is one import. Other sites cannot send one.
	upload := func(header http.Header, once, text string) shown {
		t.Helper()
		var body bytes.Buffer
		parts := multipart.NewWriter(&body)
		_ = parts.WriteField("once", once) // a buffer takes everything
		file, _ := parts.CreateFormFile("file", "users.ndjson")
		_, _ = io.WriteString(file, text)
		_ = parts.Close()
		return c.browse(t, "POST", "/console/users/imports/upload", parts.FormDataContentType(), header, &body)
	}
	many := strings.Repeat("{\"email\":\"x\"}\n", 100_000) // more than a form may have
	var to []string
	for range 2 {
		a := upload(asBrowser(sessions[0]), "file", many)
		equal(t, "sent", a.status, 303)
		to = append(to, a.header.Get("Location"))
	}
	equal(t, "the same import", to[1], to[0])
	equal(t, "imports", len(c.want(t, 200, "", "GET", importPath, nil).list()), 1)
	c.want(t, 200, "", "POST", importPath+strings.TrimPrefix(to[0], "/console/users/imports")+"/cancel", nil)
	const formula = `=HYPERLINK("https://evil.example.com")`
	wrong := upload(asBrowser(sessions[0]), "wrong", `{"email":"ann@example.com"}`+"\n"+string(rows(t, object{"email": formula}))).header.Get("Location")
	ended(t, c, strings.TrimPrefix(wrong, "/console/users/imports/"))
	p = c.visit(t, "GET", wrong+"/errors.csv", asBrowser(sessions[0]), nil)
	read, err := csv.NewReader(strings.NewReader(p.html)).ReadAll()
	equal(t, "the file of errors", []any{err, p.header.Get("Content-Type"), len(read)}, []any{nil, "text/csv; charset=utf-8", 3})
	equal(t, "its lines", []any{read[1][:3], read[2][:3]}, []any{[]string{"1", "ann@example.com", "user_exists"}, []string{"2", "'" + formula, "email_invalid"}})
	equal(t, "too many lines", upload(asBrowser(sessions[0]), "more", strings.Repeat("{}\n", userimport.MaxRows+1)).status, 413)
	equal(t, "from another site", upload(http.Header{"Cookie": {"__Host-sid=" + sessions[0]}, "Sec-Fetch-Site": {"cross-site"}}, "evil", "{}").status, 403)
	equal(t, "no session", upload(http.Header{"Sec-Fetch-Site": {"same-origin"}}, "none", "{}").header.Get("Location"), "/auth/sign-in?next=%2Fconsole%2Fusers%2Fimports%2Fupload")
	c.want(t, 200, "", "PATCH", "/api/v1/groups/"+group, object{"scopes": []string{"users:read"}})
	equal(t, "without the right", upload(asBrowser(sessions[0]), "right", "{}").status, 403)
	equal(t, "imports", len(c.want(t, 200, "", "GET", importPath, nil).list()), 2)
}

// versionOf returns the version of a form, by the last part of its action.
func versionOf(t *testing.T, page, action string) string {
	t.Helper()
	found := regexp.MustCompile(`action="[^"]*/` + action + `" class="model">\s*<input type="hidden" name="version" value="([^"]*)"`).FindStringSubmatch(page)
	if found == nil {
		t.Fatalf("no form %s:\n%s", action, page)
	}
	return found[1]
}

var islandScript = regexp.MustCompile(`<script type="module" src="/console/assets/[0-9a-f]{16}/[a-z]+\.js"></script>`)

// withoutIsland removes the scripts that a page may have: that of the shortcut and one of an island.
func withoutIsland(page string) string {
	page = strings.Replace(page, `<script type="module" src="/console/assets/shortcut.js"></script>`, "", 1)
	if at := islandScript.FindString(page); at != "" {
		return strings.Replace(page, at, "", 1)
	}
	return page
}

// explored is the graph in a page for its island.
type explored struct {
	Nodes []struct{ ID, Kind string }
	Edges []struct {
		From, To, Kind string
		Tuple          object
		Way            int
	}
}

var graphInPage = regexp.MustCompile(`data-graph="([^"]*)"`)

func withoutGraph(page string) string { return graphInPage.ReplaceAllString(page, "") }

func graphOf(t *testing.T, page string) (g explored) {
	t.Helper()
	found := graphInPage.FindStringSubmatch(page)
	if found == nil || json.Unmarshal([]byte(html.UnescapeString(found[1])), &g) != nil {
		t.Fatalf("the page has no graph: %v", found)
	}
	ids := map[string]bool{}
	for _, n := range g.Nodes {
		if ids[n.ID] {
			t.Errorf("the graph has %s twice", n.ID)
		}
		ids[n.ID] = true
	}
	for _, e := range g.Edges {
		if !ids[e.From] || !ids[e.To] {
			t.Errorf("the edge from %s to %s leads nowhere", e.From, e.To)
		}
	}
	return g
}

// exploresAnswer evaluates what a graph claims: with only the relations of its proof the question is
// allowed, and so it is with what each way of a denial misses. It returns how many claims it had.
func exploresAnswer(t *testing.T, c *client, g explored, question object, allowed bool) (claims int) {
	t.Helper()
	simulate := func(relations object) any {
		t.Helper()
		return c.want(t, 200, "", "POST", "/api/v1/resources/simulate", object{"assume": object{"relations": relations}, "check": question}).data()["check"].(object)["allowed"]
	}
	text := func(tuple object) string {
		t.Helper()
		line, err := json.Marshal(object{"resource": tuple["resource"], "relation": tuple["relation"], "subject": tuple["subject"]})
		if err != nil {
			t.Fatal(err)
		}
		return string(line)
	}
	proof, ways := map[string]bool{}, map[int][]object{}
	for _, e := range g.Edges {
		switch {
		case strings.HasPrefix(e.Kind, "proof") && e.Tuple != nil:
			proof[text(e.Tuple)] = true
		case e.Kind == "missing":
			ways[e.Way] = append(ways[e.Way], e.Tuple)
		}
	}
	if allowed {
		var others []object
		for _, typ := range []string{"item", "group"} {
			for _, r := range c.want(t, 200, "", "GET", "/api/v1/relations?limit=100&resource_type="+typ, nil).list() {
				tuple := r.(object)
				if !proof[text(tuple)] {
					others = append(others, object{"resource": tuple["resource"], "relation": tuple["relation"], "subject": tuple["subject"]})
				}
			}
		}
		if simulate(object{"remove": others}) != true {
			t.Errorf("%v is not allowed by the relations of its proof alone: %v", question, proof)
		}
		return 1
	}
	for way, tuples := range ways {
		// A way may also need that an exclusion ends, which is not a relation to add.
		if excluded(t, c, question, way) {
			continue
		}
		if claims++; simulate(object{"add": tuples}) != true {
			t.Errorf("%v is not allowed with what is missing: %v", question, tuples)
		}
	}
	return claims
}

// excluded reports whether a way of the denial of a question ends exclusions or changes relations.
func excluded(t *testing.T, c *client, question object, way int) bool {
	t.Helper()
	asked := object{"debug": true}
	for name, value := range question {
		asked[name] = value
	}
	denial, _ := c.want(t, 200, "", "POST", "/api/v1/resources/check", asked).data()["denial"].(object)
	w := denial["ways"].([]any)[way-1].(object)
	if list, _ := w["exclusions"].([]any); len(list) > 0 {
		return true
	}
	for _, r := range w["relations"].([]any) {
		if r.(object)["state"] != "absent" {
			return true
		}
	}
	return false
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
	allowed, explored := 0, map[bool]int{}
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
				if p.status != 200 || yes != (a["allowed"] == true) || yes == strings.Contains(p.html, "✗ Denied") || strings.Contains(withoutIsland(p.html), "<script") {
					t.Fatalf("%s %s %s is %v, page: %d\n%s", person, action, item, a, p.status, p.html)
				}
				if strings.Contains(p.html, "data-graph") {
					g := graphOf(t, p.html)
					explored[yes] += exploresAnswer(t, c, g, object{"subject": part(person), "action": action, "resource": object{"type": "item", "external_id": item}}, yes)
				}
				p.html = withoutGraph(p.html)
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
	if allowed < 5 || explored[true] < 5 || explored[false] < 5 {
		t.Errorf("%d decisions are allowed, and graphs of %v explored", allowed, explored)
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
	equal(t, "found", []any{p.status, strings.Count(p.html, "/console/relations/remove?"), strings.Contains(withoutIsland(p.html), "<script")}, []any{200, 1, false})
	p = c.visit(t, "GET", "/console/relations/remove?"+relation.Encode(), asBrowser(token), nil)
	equal(t, "compare", []any{p.status, strings.Contains(p.html, "These lose"), strings.Contains(withoutIsland(p.html), "<script")}, []any{200, true, false})
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
		"/console/simulator": 200, "/console/simulator?subject=user:a&action=view&resource=item:a": 200, "/console/simulator?subject=" + url.QueryEscape(hostile) + "&remove=" + url.QueryEscape(hostile): 400,
		"/console/simulator?subject=user:a&action=view&resource=item:a&remove=" + url.QueryEscape(hostile): 400, "/console/simulator?subject=user:a&action=view&resource=item:a&remove=item:a%23editor@user:nobody": 404,
		"/console/simulator?subject=user:a&action=view&resource=item:a&add=" + url.QueryEscape(`{"resource":1}`): 400, "/console/simulator?subject=user:a&action=view&resource=item:a&add=item:b%23nothing@user:a": 400,
		"/console/simulator?subject=user:a&action=view&resource=item:a&instant=" + url.QueryEscape(hostile): 400, "/console/simulator?subject=user:a&action=view&resource=item:a&then=" + url.QueryEscape(hostile): 400,
		"/console/simulator?subject=user:a&action=view&resource=item:none": 404, "/console/simulator?subject=user:a&action=edit&resource=item:none&add=item:none%23editor@user:a": 200, "/console/simulator?subject=user:a&action=view&resource=item:a&at=" + url.QueryEscape(hostile): 400,
	} {
		p := c.visit(t, "GET", target, asBrowser(token), nil)
		p.html = withoutIsland(p.html)
		equal(t, target, []any{p.status, strings.Contains(p.html, "<script"), strings.Contains(p.html, "Go to your account")}, []any{status, false, false})
	}
}
