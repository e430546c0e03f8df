package api_test

import (
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// enters signs in at a provider, and returns the token of the session.
func (p *openID) enters(t testing.TB, c *client, claims object) (session string) {
	t.Helper()
	b := c.start(t, "staff", "")
	d := c.with("").want(t, 200, "", "POST", authPath+"/federation/complete", b.complete("staff", p.signIn(t, b.request, claims))).data()
	if d["status"] != "complete" {
		t.Fatalf("sign-in: %v", d)
	}
	return d["session_token"].(string)
}

func (c *client) live(t testing.TB, session string) bool {
	t.Helper()
	return c.with(session).do(t, "GET", mePath+"/profile", nil).status == 200
}

// federatedLogout leads a user who signs out through the sign-out of the provider, and from there to
// the destination.
func federatedLogout(t *testing.T, w *world, c *client) {
	w.ahead.Store(0) // both clocks count here
	p := newOpenID(t, w)
	p.more["end_session_endpoint"] = p.URL + "/logout?x=1"
	path, id := staff(t, c, p, nil)
	equal(t, "URL", c.want(t, 200, "", "GET", path, nil).data()["post_logout_url"], c.base()+"/federation/staff/logged-out")
	claims := object{"sub": "1", "email": "ann@example.org", "email_verified": true, "sid": "s-1"}

	// leaves is a sign-out whose browser is at the provider.
	leaves := func(header http.Header, to string) (b begun, state string) {
		t.Helper()
		if !strings.HasPrefix(to, p.URL+"/logout?") {
			t.Fatalf("the sign-out leads to %q", to)
		}
		b = begunBy(t, header, to)
		u, err := url.Parse(to)
		if err != nil {
			t.Fatal(err)
		}
		q := u.Query()
		equal(t, "request", []any{q.Get("x"), q.Get("client_id"), q.Get("post_logout_redirect_uri"), claimsOf(t, q.Get("id_token_hint"))["sid"], q.Get("state") != ""},
			[]any{"1", "id", c.base() + "/federation/staff/logged-out", "s-1", true})
		return b, q.Get("state")
	}
	back := func(slug, state string, cookies []string) string {
		t.Helper()
		a := c.visit(t, "GET", "/federation/"+slug+"/logged-out?state="+state, http.Header{"Cookie": cookies}, nil)
		equal(t, "back", a.status, 303)
		return a.header.Get("Location")
	}
	const end = "/auth/sign-in?done=out"

	// On the page.
	session := p.enters(t, c, claims)
	page := c.visit(t, "POST", "/auth/sign-out", asBrowser(session), url.Values{"next": {"/account/sessions?x=1"}})
	b, state := leaves(page.header, page.header.Get("Location"))
	equal(t, "out", c.live(t, session), false)
	equal(t, "a preview of the link", c.visit(t, "HEAD", "/federation/staff/logged-out?state="+state, http.Header{"Cookie": b.cookies}, nil).status, 200)
	equal(t, "another browser", back("staff", state, nil), end)
	equal(t, "the destination", back("staff", state, b.cookies), "/account/sessions?x=1")
	equal(t, "once", back("staff", state, b.cookies), end)
	session = p.enters(t, c, claims)
	page = c.visit(t, "POST", "/auth/sign-out", asBrowser(session), url.Values{})
	b, state = leaves(page.header, page.header.Get("Location"))
	equal(t, "another connection", back("other", state, b.cookies), end)

	// At the request of an application.
	bye := "https://app.example.com/bye?x=1"
	app := newParty(t, c, object{"post_logout_redirect_uris": []any{bye}})
	app.session = p.enters(t, c, claims)
	hint := app.exchange(t, app.code(t, nil), nil).body["id_token"].(string)
	a, _ := app.browse(t, logoutPath+"?"+url.Values{"id_token_hint": {hint}, "post_logout_redirect_uri": {bye}, "state": {"a&b"}}.Encode())
	b, state = leaves(a.header, a.header.Get("Location"))
	equal(t, "the application", []any{back("staff", state, b.cookies), c.live(t, app.session)}, []any{bye + "&state=a%26b", false})
	app.session = p.enters(t, c, claims)
	asked := logoutPath + "?" + url.Values{"client_id": {app.id}, "post_logout_redirect_uri": {bye}}.Encode()
	_, to := app.browse(t, asked)
	page = c.visit(t, "POST", "/auth/sign-out", asBrowser(app.session), url.Values{"next": {to.Query().Get("next")}})
	b, state = leaves(page.header, page.header.Get("Location"))
	equal(t, "the application, after a question", back("staff", state, b.cookies), asked)

	// By a client.
	me := c.with(p.enters(t, c, claims))
	begin := func(form any) any {
		t.Helper()
		return me.want(t, 200, "", "POST", authPath+"/federation/logout", form).data()["redirect_to"]
	}
	for _, evil := range []string{"https://evil.test", "//evil.test", "/\\evil.test", "x", "/" + strings.Repeat("x", 8192)} {
		me.want(t, 400, "validation_failed", "POST", authPath+"/federation/logout", object{"redirect_to": evil})
	}
	me.want(t, 400, "invalid_json", "POST", authPath+"/federation/logout", "{")
	equal(t, "key", me.send(t, "POST", authPath+"/federation/logout", http.Header{"Idempotency-Key": {long(256)}}, nil).code(), "idempotency_key_invalid")
	c.want(t, 403, "permission_denied", "POST", authPath+"/federation/logout", nil)
	a = me.want(t, 200, "", "POST", authPath+"/federation/logout", nil)
	b, state = leaves(a.header, a.data()["redirect_to"].(string))
	equal(t, "no destination", []any{back("staff", state, b.cookies), c.live(t, me.token)}, []any{end, true})
	large := maps.Clone(claims)
	large["text"] = long(4 << 10)
	me = c.with(p.enters(t, c, large))
	equal(t, "a large ID token", strings.Contains(begin(nil).(string), "id_token_hint"), false)

	// Without a provider at which the user can sign out.
	c.want(t, 200, "", "POST", path+"/disable", nil)
	equal(t, "disabled", begin(nil), nil)
	c.want(t, 200, "", "POST", path+"/enable", nil)
	equal(t, "enabled", begin(nil) != nil, true)
	member(t, c, "bob@example.com")
	mine := me
	me = signedIn(t, c, "bob@example.com")
	equal(t, "a password", begin(nil), nil)
	me = mine
	c.want(t, 204, "", "DELETE", connectionsPath+"/"+id.(string), nil)
	equal(t, "deleted", begin(nil), nil)
	q := newOpenID(t, w)
	staff(t, c, q, nil)
	me = c.with(q.enters(t, c, claims))
	equal(t, "no end_session_endpoint", begin(nil), nil)
	page = c.visit(t, "POST", "/auth/sign-out", asBrowser(me.token), url.Values{"next": {"/account/sessions"}})
	equal(t, "no end_session_endpoint", []any{page.header.Get("Location"), c.live(t, me.token)}, []any{"/account/sessions", false})
}

// logoutTokens end the sessions that a provider names.
func logoutTokens(t *testing.T, w *world, c *client) {
	p := newOpenID(t, w)
	path, _ := staff(t, c, p, nil)
	equal(t, "URL", c.want(t, 200, "", "GET", path, nil).data()["backchannel_logout_url"], c.base()+"/federation/staff/backchannel-logout")
	n := 0
	token := func(claims object) string {
		t.Helper()
		n++
		all := object{"iss": p.URL, "aud": "id", "iat": w.now().Unix(), "exp": w.now().Add(2 * time.Minute).Unix(), "jti": string(rune('a' + n)), "events": object{"http://schemas.openid.net/event/backchannel-logout": object{}}}
		maps.Copy(all, claims)
		return p.sign(t, "logout+jwt", all)
	}
	form := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	send := func(slug string, body url.Values) answer {
		t.Helper()
		a := c.with("").send(t, "POST", "/federation/"+slug+"/backchannel-logout", form, []byte(body.Encode()))
		if a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("Cache-Control: %v", a.header)
		}
		return a
	}
	ends := func(status int, claims object) {
		t.Helper()
		equal(t, "status", send("staff", url.Values{"logout_token": {token(claims)}}).status, status)
	}
	claims := func(sub, sid string) object {
		return object{"sub": sub, "email": sub + "@example.org", "email_verified": true, "sid": sid}
	}
	one, two, other := p.enters(t, c, claims("ann", "s1")), p.enters(t, c, claims("ann", "s2")), p.enters(t, c, claims("bob", "s3"))
	live := func(want ...bool) {
		t.Helper()
		equal(t, "live", []any{c.live(t, one), c.live(t, two), c.live(t, other)}, []any{want[0], want[1], want[2]})
	}

	app := newParty(t, c, nil)
	app.session = one
	refresh := app.exchange(t, app.code(t, url.Values{"scope": {"openid"}}), nil).body["refresh_token"]

	// A token that is not one changes nothing.
	nonce := object{"sid": "s1", "nonce": "n"}
	for what, bad := range map[string]object{
		"nonce": nonce, "aud": {"sid": "s1", "aud": "other"}, "iss": {"sid": "s1", "iss": "https://other.test"}, "no event": {"sid": "s1", "events": object{}},
		"no subject": {}, "expired": {"sid": "s1", "exp": w.now().Add(-2 * time.Minute).Unix()},
	} {
		a := send("staff", url.Values{"logout_token": {token(bad)}})
		equal(t, what, []any{a.status, a.code(), strings.Contains(a.text, "s1")}, []any{400, "invalid_request", false})
	}
	equal(t, "an ID token", send("staff", url.Values{"logout_token": {p.sign(t, "JWT", with(claims("ann", "s1"), object{"iss": p.URL, "aud": "id", "iat": w.now().Unix(), "jti": "x"}))}}).code(), "invalid_request")
	for what, body := range map[string]url.Values{
		"nothing": {}, "two": {"logout_token": {token(object{"sid": "s1"}), token(object{"sid": "s1"})}}, "not a token": {"logout_token": {"x"}}, "too large": {"logout_token": {long(200 << 10)}},
	} {
		equal(t, what, send("staff", body).code(), "invalid_request")
	}
	equal(t, "JSON", c.with("").send(t, "POST", "/federation/staff/backchannel-logout", http.Header{"Content-Type": {"application/json"}}, []byte("{}")).code(), "invalid_request")
	equal(t, "unknown", send("none", url.Values{"logout_token": {"x"}}).code(), "connection_not_found")
	connect(t, c, object{"kind": "social.github", "slug": "github", "name": "GitHub", "client_id": "id", "client_secret": "cs_kept"})
	equal(t, "no OpenID provider", send("github", url.Values{"logout_token": {"x"}}).code(), "connection_not_found")
	live(true, true, true)

	// A session of the provider, once.
	first := url.Values{"logout_token": {token(object{"sid": "s1"})}}
	equal(t, "sid", send("staff", first).status, 200)
	live(false, true, true)
	if refresh != nil {
		equal(t, "refresh", app.refresh(t, refresh.(string), nil).code(), "invalid_grant")
	}
	one = p.enters(t, c, claims("ann", "s1"))
	equal(t, "again", send("staff", first).code(), "invalid_request")
	live(true, true, true)
	ends(200, object{"sid": "s2", "sub": "bob"}) // not one session
	live(true, true, true)

	// All of a subject, also while the connection is disabled.
	c.want(t, 200, "", "POST", path+"/disable", nil)
	ends(200, object{"sub": "ann"})
	live(false, false, true)
	ends(200, object{"sub": "ann"}) // none is left
	reasons := map[any]int{}
	for _, e := range w.events(t, c, 0) {
		if e.Type == "session.revoked" {
			reasons[parse(t, string(e.Data)).(map[string]any)["reason"]]++
		}
	}
	equal(t, "reasons", reasons, map[any]int{"provider": 3})
}
