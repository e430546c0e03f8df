package api_test

import (
	"maps"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
)

// federatedDemands passes the demands of an authorization request on to the provider, and compares
// its answer with them.
func federatedDemands(t *testing.T, w *world, c *client) {
	w.ahead.Store(0) // both clocks count here
	p := newOpenID(t, w, object{"acr_values_supported": []any{"0", "aal2"}})
	staff(t, c, p, object{"second_factor": "accept"})
	app := newParty(t, c, nil)
	claims := object{"sub": "1", "email": "ann@example.org", "email_verified": true}
	ago := func(d time.Duration) object { return object{"auth_time": w.now().Add(-d).Unix()} }
	// enters signs in at the provider for an authorization request.
	enters := func(changes url.Values, more object) (asked url.Values, a answer) {
		t.Helper()
		app.session = ""
		_, to := app.ask(t, changes)
		b := c.start(t, "staff", "?next="+url.QueryEscape(to.Query().Get("next")))
		u, err := url.Parse(b.request)
		if err != nil {
			t.Fatal(err)
		}
		all := maps.Clone(claims)
		maps.Copy(all, more)
		a = c.with("").do(t, "POST", authPath+"/federation/complete", b.complete("staff", p.signIn(t, b.request, all)))
		if a.status == 200 {
			app.session = a.data()["session_token"].(string)
		}
		return u.Query(), a
	}
	resumed := func() (path string, idToken map[string]any) {
		t.Helper()
		_, to := app.browse(t, "/oauth2/authorize/resume?flow="+app.flow)
		if code := to.Query().Get("code"); code != "" {
			idToken = claimsOf(t, app.exchange(t, code, nil).body["id_token"].(string))
		}
		return to.Path, idToken
	}

	asked, _ := enters(nil, ago(time.Hour))
	equal(t, "no demands", []any{asked.Get("prompt"), asked.Get("max_age"), asked.Get("acr_values")}, []any{"", "", ""})
	_, token := resumed()
	equal(t, "auth_time", token["auth_time"].(float64) <= float64(w.now().Add(-time.Hour).Unix()), true)

	asked, a := enters(url.Values{"prompt": {"login"}}, ago(time.Hour))
	equal(t, "an old one", []any{asked.Get("prompt"), a.status, a.code()}, []any{"login", 400, "federation_failed"})
	_, a = enters(url.Values{"prompt": {"login"}}, ago(0))
	equal(t, "a new one", a.status, 200)
	path, _ := resumed()
	equal(t, "a new one", path, "/cb")
	enters(url.Values{"prompt": {"login"}}, nil)
	path, _ = resumed()
	equal(t, "not stated", path, "/cb")

	asked, a = enters(url.Values{"max_age": {"600"}}, ago(15*time.Minute))
	equal(t, "older than max_age", []any{asked.Get("max_age"), a.status}, []any{"600", 400})
	_, a = enters(url.Values{"max_age": {"600"}}, nil)
	equal(t, "max_age, not stated", a.status, 400)
	enters(url.Values{"max_age": {"600"}}, ago(5*time.Minute))
	path, _ = resumed()
	equal(t, "within max_age", path, "/cb")
	enters(nil, ago(15*time.Minute))
	_, to := app.ask(t, url.Values{"max_age": {"600"}})
	equal(t, "the session is older", to.Path, "/auth/sign-in")
	enters(url.Values{"prompt": {"select_account"}}, ago(15*time.Minute))
	path, _ = resumed()
	equal(t, "chosen at the provider", path, "/cb")

	asked, _ = enters(url.Values{"acr_values": {"aal2"}}, object{"acr": "aal2"})
	equal(t, "second factor", asked.Get("acr_values"), "aal2")
	_, token = resumed()
	equal(t, "second factor", token["acr"], "aal2")
	step := url.Values{"acr_values": {"aal2"}, "max_age": {strconv.Itoa(3600)}}
	enters(step, with(object{"acr": "aal2"}, ago(20*time.Minute)))
	path, _ = resumed()
	equal(t, "an old second factor", strings.HasPrefix(path, "/account/security"), true)
	enters(step, with(object{"acr": "aal2"}, ago(10*time.Minute)))
	path, _ = resumed()
	equal(t, "a recent second factor", path, "/cb")
}

// federatedSteps are what happens between the callback and the session.
func federatedSteps(t *testing.T, w *world, c *client) {
	p := newOpenID(t, w)
	group := c.want(t, 201, "", "POST", "/api/v1/groups", object{"name": "Engineers", "slug": "engineers"}).data()["id"].(string)
	path, id := staff(t, c, p, object{"attribute_mapping": object{"groups": "$.roles"}, "group_mapping": []any{object{"value": "engineering", "group_id": group}}})
	email := "ann@example.org"
	member(t, c, email)
	me := signedIn(t, c, email)
	key, _ := enrol(t, w, me)
	anyone := c.with("")
	begin := func(connection string) (mfaToken any) {
		t.Helper()
		b := c.start(t, connection, "")
		d := anyone.want(t, 200, "", "POST", authPath+"/federation/complete", b.complete(connection, p.signIn(t, b.request, object{"sub": "1", "email": email, "email_verified": true, "roles": []any{"engineering"}}))).data()
		equal(t, "status", d["status"], "mfa_required")
		return d["mfa_token"]
	}
	prove := func(token any) answer {
		t.Helper()
		w.later(step)
		return anyone.do(t, "POST", authPath+"/mfa/verify", object{"mfa_token": token, "kind": "totp", "code": code(t, key, w.now())})
	}
	members := func() int { return len(c.want(t, 200, "", "GET", "/api/v1/groups/"+group+"/members", nil).list()) }
	identities := func() int { return len(me.want(t, 200, "", "GET", mePath+"/identities", nil).list()) }

	token := begin("staff")
	equal(t, "before the second factor", []any{members(), identities()}, []any{0, 0})
	c.want(t, 200, "", "POST", path+"/disable", nil)
	a := prove(token)
	equal(t, "disabled meanwhile", []any{a.status, a.code(), members(), identities()}, []any{400, "ceremony_invalid", 0, 0})
	c.want(t, 200, "", "POST", path+"/enable", nil)
	equal(t, "enabled again", []any{prove(begin("staff")).data()["status"], members(), identities()}, []any{"complete", 1, 1})

	other, d := connect(t, c, object{"kind": "oidc", "slug": "other", "name": "Other", "issuer": p.URL, "client_id": "id", "client_secret": "cs_kept"})
	token = begin("other")
	c.want(t, 204, "", "DELETE", other, nil)
	a = prove(token)
	equal(t, "deleted meanwhile", []any{a.status, a.code(), identities()}, []any{400, "ceremony_invalid", 1})
	equal(t, "ids differ", d["id"] != id, true)
}

// unlinkingWithoutFactors needs a recent sign-in of users who have no second factor, and the second
// factor of others.
func unlinkingWithoutFactors(t *testing.T, w *world, c *client) {
	c.want(t, 200, "", "PATCH", "/api/v1/settings", object{"mfa_policy": object{"mode": "off"}})
	ann := member(t, c, "ann@example.com")
	w.linked(t, c, ann, "google", "1")
	w.linked(t, c, ann, "github", "2")
	me := signedIn(t, c, "ann@example.com")
	me.want(t, 204, "", "DELETE", identitiesPath+"/con_google", nil)
	w.later(11 * time.Minute)
	defer w.later(-11 * time.Minute)
	a := me.want(t, 401, "insufficient_user_authentication", "DELETE", identitiesPath+"/con_github", nil)
	equal(t, "details", a.details()["sign_in_required"], true)
}

// namedConnection leads a user straight to the connection that an authorization request names.
func namedConnection(t *testing.T, w *world, c *client) {
	w.ahead.Store(0) // both clocks count here
	p := newOpenID(t, w)
	path, _ := staff(t, c, p, nil)
	app := newParty(t, c, nil)
	at := func(changes url.Values) (answer, *url.URL) {
		t.Helper()
		return app.ask(t, merged(url.Values{"connection": {"staff"}}, changes))
	}
	const start = "/api/v1/auth/federation/staff/start"
	a, to := at(url.Values{"login_hint": {"ann@example.org"}})
	equal(t, "straight", []any{a.status, to.Path, to.Query().Get("login_hint")}, []any{302, start, "ann@example.org"})
	b := c.start(t, "staff", "?"+to.RawQuery)
	claims := object{"sub": "1", "email": "ann@example.org", "email_verified": true}
	d := c.with("").want(t, 200, "", "POST", authPath+"/federation/complete", b.complete("staff", p.signIn(t, b.request, claims))).data()
	app.session = d["session_token"].(string)
	_, to = app.browse(t, d["redirect_to"].(string))
	equal(t, "back", []any{to.Path, to.Query().Get("code") != ""}, []any{"/cb", true})
	_, to = at(nil)
	equal(t, "the session suffices", to.Path, "/cb")
	_, to = at(url.Values{"prompt": {"login"}})
	equal(t, "again", to.Path, start)
	_, to = at(url.Values{"prompt": {"create"}})
	equal(t, "an account", to.Path, "/auth/sign-up")

	// A provider that does not satisfy the request is not asked in a circle.
	_, to = at(url.Values{"max_age": {"0"}})
	equal(t, "max_age", to.Path, start)
	flow := to.Query().Get("next")
	app.session = p.enters(t, c, with(claims, object{"auth_time": w.now().Add(-time.Hour).Unix()}))
	_, to = app.browse(t, flow)
	equal(t, "no circle", to.Path, "/auth/sign-in")
	app.session = ""
	_, to = app.browse(t, flow)
	equal(t, "without a session", to.Path, start)

	// Not at a connection at which the user cannot sign in.
	_, to = at(url.Values{"prompt": {"none"}})
	equal(t, "prompt=none", to.Query().Get("error"), "login_required")
	for _, bad := range []string{"../x", "A", "a b", long(64)} {
		_, to = at(url.Values{"connection": {bad}})
		equal(t, bad, to.Query().Get("error"), "invalid_request")
	}
	_, to = at(url.Values{"connection": {"staff", "staff"}})
	equal(t, "repeated", to.Query().Get("error"), "invalid_request")
	c.want(t, 200, "", "POST", path+"/disable", nil)
	for slug, status := range map[string]int{"staff": 403, "none": 404} {
		_, to = at(url.Values{"connection": {slug}})
		page := c.visit(t, "GET", to.RequestURI(), nil, nil)
		back := "/auth/sign-in?next=" + url.QueryEscape(to.Query().Get("next"))
		equal(t, slug, []any{page.status, strings.Contains(page.html, strings.ReplaceAll(back, "&", "&amp;"))}, []any{status, true})
	}
}

// merged returns values with others instead.
func merged(values, others url.Values) url.Values {
	maps.Copy(values, others)
	return values
}
