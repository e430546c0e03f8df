package api_test

import (
	"html"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"stonetown/api/console"
	"stonetown/api/web"
)

// steppedUp adds a passkey to the user of a session, which raises it to AAL 2.
func steppedUp(t testing.TB, me *client) *client {
	t.Helper()
	newDevice(me.host).register(t, me)
	return me
}

// keptFields are the hidden fields of the form of a page that is sent to a path.
func keptFields(page, action string) url.Values {
	_, form, _ := strings.Cut(page, `action="`+html.EscapeString(action)+`"`)
	form, _, _ = strings.Cut(form, "</form>")
	fields := url.Values{}
	for _, m := range regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`).FindAllStringSubmatch(form, -1) {
		fields.Add(html.UnescapeString(m[1]), html.UnescapeString(m[2]))
	}
	return fields
}

// served returns the routes of a console.
func served(t testing.TB) func(map[string]map[string]http.Handler, error) map[string]map[string]http.Handler {
	return func(routes map[string]map[string]http.Handler, err error) map[string]map[string]http.Handler {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return routes
	}
}

// delicateForms: the session of an administrator is not enough for delicate forms. What was typed is
// kept until a second factor is proved, and sent by a click.
func delicateForms(t *testing.T, w *world, c *client) {
	defer w.ahead.Store(w.ahead.Load())
	ann := member(t, c, "ann@example.com")
	group := c.want(t, 201, "", "POST", "/api/v1/groups", object{"slug": "admins", "name": "Admins", "scopes": []string{"applications:read", "applications:write", "federation:read", "federation:write", "groups:read", "groups:write", "users:read", "users:write"}}).data()["id"].(string)
	c.want(t, 201, "", "POST", "/api/v1/groups/"+group+"/members", object{"user_id": ann})
	me := signedIn(t, c, "ann@example.com")
	get := func(target string) shown { t.Helper(); return c.visit(t, "GET", target, asBrowser(me.token), nil) }
	post := func(target string, form url.Values) shown {
		t.Helper()
		return c.visit(t, "POST", target, asBrowser(me.token), form)
	}
	applications := func() int { return len(c.want(t, 200, "", "GET", appsPath+"?q=Kept", nil).list()) }
	const page = "/console/applications/new?type=m2m"
	typed := url.Values{"once": {"random"}, "version": {""}, "name": {`Kept "<b>`}, "description": {"two\nlines"}, "allowed_scopes": {"users:read", "applications:read"}}

	// A form of its own is not shown before.
	for range 2 {
		p := get(page)
		equal(t, "before the form", []any{p.status, p.header.Get("Location")}, []any{303, "/account/step-up?next=" + url.QueryEscape(page)})
	}
	p := get("/account/step-up?next=" + url.QueryEscape(page))
	equal(t, "a person without a factor adds one", []any{p.status, p.header.Get("Location")}, []any{303, "/account/security?done=enrol&next=" + url.QueryEscape(page)})

	// What is sent is kept on the page, and nothing happens.
	asked := func(p shown, target string, want url.Values) {
		t.Helper()
		if p.status != 403 || !strings.Contains(p.html, "Confirm that it is you") || !strings.Contains(p.html, `href="/account/step-up?next=%2Fconsole%2Fconfirmed"`) || p.header.Get("Location") != "" {
			t.Fatalf("%s: %d %v\n%s", target, p.status, p.header, p.html)
		}
		equal(t, "kept", keptFields(p.html, target), want)
	}
	asked(post(page, typed), page, typed)
	asked(post(page, typed), page, typed) // also if it is sent again
	equal(t, "nothing was created", applications(), 0)
	asked(post("/console/groups/"+group, url.Values{"user": {ann}}), "/console/groups/"+group, url.Values{"user": {ann}})
	equal(t, "the page of the group", get("/console/groups/"+group).status, 200)
	secretForm := url.Values{"slug": {"kept"}, "client_secret": {"planted secret"}, "name": {"x"}}
	asked(post("/console/connections/new?kind=oidc", secretForm), "/console/connections/new?kind=oidc", secretForm)
	// An address never has a secret, also if the session has ended.
	p = c.visit(t, "POST", "/console/connections/new?kind=oidc", http.Header{"Sec-Fetch-Site": {"same-origin"}}, secretForm)
	if to := p.header.Get("Location"); p.status != 303 || !strings.Contains(to, "kept") || strings.Contains(to, "planted") {
		t.Errorf("without a session: %d %s", p.status, to)
	}
	// A file cannot be kept: the page offers it after the proof.
	p = get("/console/users/imports")
	equal(t, "no form for files", []any{p.status, strings.Contains(p.html, "multipart/form-data"), strings.Contains(p.html, `href="/account/step-up?next=%2Fconsole%2Fusers%2Fimports"`)}, []any{200, false, true})
	p = c.browse(t, "POST", "/console/users/imports/upload", "multipart/form-data; boundary=x", asBrowser(me.token), strings.NewReader("--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n{\"email\":\"kept@example.com\"}\r\n--x--\r\n"))
	equal(t, "a file", []any{p.status, p.header.Get("Location"), len(c.want(t, 200, "", "GET", importPath, nil).list())}, []any{303, "/account/step-up?next=%2Fconsole%2Fusers%2Fimports%2Fupload", 0})
	// Other forms need no proof.
	equal(t, "an ordinary form", post("/console/users/"+ann+"/enable", url.Values{}).status, 303)

	// These forms ask, and no others.
	ask := strings.Fields(`
		users/imports/upload users/new users/{}/edit users/{}/delete users/{}/reset-factors users/{}/factors/{}/remove
		groups/{} groups/new groups/{}/edit groups/{}/delete model/apply relations/resources/delete security/scopes/new security/scopes/{}/edit security/scopes/{}/delete
		applications/new applications/{}/edit applications/{}/rotate-secret applications/{}/delete applications/{}/claims/save
		webhooks/new webhooks/{}/edit webhooks/{}/rotate-secret webhooks/{}/delete
		incidents/{}/notify
		connections/new connections/{}/edit connections/{}/enable connections/{}/delete connections/{}/mapping/save
		security/issuers/new security/issuers/{}/edit security/issuers/{}/enable security/issuers/{}/delete
		security/policies/{} security/keys/rotate security/keys/replace security/certificates/{}/rotate security/certificates/{}/replace
		security/threat-feeds/new security/threat-feeds/{}/edit security/threat-feeds/{}/upload security/threat-feeds/{}/delete
		sign-in-flow/publish sign-in-flow/versions/{}/rollback sign-in-flow/actions/{}/secret branding/mails/{}/{}`)
	askInControl := strings.Fields(`
		tenants/new tenants/{}/suspend tenants/{}/decommission tenants/{}/open-console members/{}/edit invitations/new
		service-accounts/new service-accounts/{}/edit service-accounts/{}/rotate-secret service-accounts/{}/delete`)
	for n, path := range askInControl {
		askInControl[n] = "organizations/{}/" + path
	}
	variable := regexp.MustCompile(`{[^}]*}`)
	plain := func(_ web.Operation, _ web.ErrorFormat, next http.Handler) http.Handler { return next }
	owner, _ := w.console(t, c, "owner")
	for what, site := range map[string]struct {
		who    *client
		routes map[string]map[string]http.Handler
		ask    []string
	}{
		"tenant":        {me, served(t)((&console.Handlers{}).Routes(plain)), ask},
		"control plane": {owner, served(t)((&console.Handlers{}).ControlRoutes(plain)), askInControl},
	} {
		asked := 0
		for path, methods := range site.routes {
			if methods["POST"] == nil {
				continue
			}
			media := "application/x-www-form-urlencoded"
			if strings.HasSuffix(path, "/upload") || strings.HasSuffix(path, "/logo") {
				media = "multipart/form-data; boundary=x"
			}
			p := site.who.browse(t, "POST", variable.ReplaceAllString(path, "x"), media, asBrowser(site.who.token), strings.NewReader("x=y"))
			asks := p.status == 403 && strings.Contains(p.html, "Confirm that it is you") || strings.HasPrefix(p.header.Get("Location"), "/account/step-up?")
			listed := slices.Contains(site.ask, variable.ReplaceAllString(strings.TrimPrefix(path, "/console/"), "{}"))
			equal(t, what+": "+path, asks, listed)
			if asks {
				asked++
			}
		}
		equal(t, "forms of the "+what+" that ask", asked, len(site.ask))
	}

	// With the proof, the kept form acts once.
	steppedUp(t, me)
	equal(t, "the other tab", get("/console/confirmed").status, 200)
	equal(t, "the form", get(page).status, 200)
	for range 2 {
		if p := post(page, typed); p.status != 200 || !strings.Contains(p.html, "cs_") {
			t.Fatalf("continued: %d\n%s", p.status, p.html)
		}
	}
	equal(t, "created", applications(), 1)

	// The proof becomes old.
	w.later(16 * time.Minute)
	again := maps.Clone(typed)
	again.Set("once", "another")
	asked(post(page, again), page, again)
	equal(t, "before the form", get(page).header.Get("Location"), "/account/step-up?next="+url.QueryEscape(page))
	equal(t, "the proof", get("/account/step-up?next="+url.QueryEscape(page)).status, 200)
	equal(t, "still one", applications(), 1)

	// A tenant without second factors asks users without one for nothing.
	bob := member(t, c, "bob@example.com")
	c.want(t, 201, "", "POST", "/api/v1/groups/"+group+"/members", object{"user_id": bob})
	c.want(t, 200, "", "PATCH", "/api/v1/settings", object{"mfa_policy": object{"mode": "off"}})
	me = signedIn(t, c, "bob@example.com")
	equal(t, "without second factors", get(page).status, 200)
	equal(t, "a form", post(page, again).status, 200)
	equal(t, "created", applications(), 2)
}
