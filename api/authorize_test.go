package api_test

import (
	"crypto/sha256"
	"encoding/base64"
	"html"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

const (
	callback = "https://app.example.com/cb?tab=1"
	verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk" // RFC 7636, appendix B
)

func challengeOf(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// relyingParty is an application with the browser of a user in front of it.
type relyingParty struct {
	*client
	id, secret string
	session    string   // of the browser
	browser    []string // cookies to which its authorization requests are bound
	flow       string   // the id of the last one
}

func newParty(t testing.TB, c *client, form object) *relyingParty {
	t.Helper()
	setup := object{"name": "App", "type": "server", "redirect_uris": []any{callback}}
	maps.Copy(setup, form)
	d := c.want(t, 201, "", "POST", appsPath, setup).data()
	secret, _ := d["client_secret"].(string)
	return &relyingParty{client: c.with(""), id: d["client_id"].(string), secret: secret}
}

// request returns the parameters of an authorization request; nil in changes removes one.
func (p *relyingParty) request(changes url.Values) url.Values {
	v := url.Values{
		"response_type": {"code"}, "client_id": {p.id}, "redirect_uri": {callback}, "scope": {"openid profile email"}, "state": {"a b&c="},
		"code_challenge": {challengeOf(verifier)}, "code_challenge_method": {"S256"}, "nonce": {"n-1"},
	}
	maps.Copy(v, changes)
	return v
}

// browse requests a page with the cookies of the browser and stores new cookies.
func (p *relyingParty) browse(t testing.TB, target string) (a answer, to *url.URL) {
	t.Helper()
	a = p.send(t, "GET", target, http.Header{"Cookie": {strings.Join(append([]string{"__Host-sid=" + p.session}, p.browser...), "; ")}}, nil)
	p.keep(t, a)
	to, err := url.Parse(a.header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	if _, id, ok := strings.Cut(to.Query().Get("next"), "?flow="); ok {
		p.flow = id
	} else if id := to.Query().Get("flow"); id != "" {
		p.flow = id
	}
	return a, to
}

// keep stores the cookies to which authorization requests are bound.
func (p *relyingParty) keep(t testing.TB, a answer) {
	t.Helper()
	for _, text := range a.header["Set-Cookie"] {
		cookie, err := http.ParseSetCookie(text)
		if err != nil {
			t.Fatal(err)
		}
		if pair := cookie.Name + "=" + cookie.Value; strings.HasPrefix(pair, "__Host-oauth-") && !slices.Contains(p.browser, pair) {
			p.browser = append(p.browser, pair)
		}
	}
}

// ask sends an authorization request.
func (p *relyingParty) ask(t testing.TB, changes url.Values) (answer, *url.URL) {
	t.Helper()
	return p.browse(t, "/oauth2/authorize?"+p.request(changes).Encode())
}

// code returns the code for an authorization request of a signed-in user.
func (p *relyingParty) code(t testing.TB, changes url.Values) string {
	t.Helper()
	a, to := p.ask(t, changes)
	code := to.Query().Get("code")
	if a.status != 302 || code == "" {
		t.Fatalf("authorize: %d to %s\n%s", a.status, to, a.text)
	}
	return code
}

// exchange redeems a code.
func (p *relyingParty) exchange(t testing.TB, code string, changes url.Values) answer {
	t.Helper()
	v := url.Values{"grant_type": {"authorization_code"}, "client_id": {p.id}, "code": {code}, "redirect_uri": {callback}, "code_verifier": {verifier}}
	if p.secret != "" {
		v.Set("client_secret", p.secret)
	}
	maps.Copy(v, changes)
	return p.form(t, nil, v)
}

func (p *relyingParty) refresh(t testing.TB, token string, changes url.Values) answer {
	t.Helper()
	return p.exchange(t, "", func() url.Values {
		v := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}, "code": nil, "redirect_uri": nil, "code_verifier": nil}
		maps.Copy(v, changes)
		return v
	}())
}

func authorizationCode(t *testing.T, w *world, c *client) {
	w.ahead.Store(0) // both clocks count here
	id := member(t, c, "ann@example.com")
	p := newParty(t, c, nil)

	// Without a session the user signs in first, in this browser, and then continues.
	a, to := p.ask(t, nil)
	equal(t, "first", []any{a.status, to.Path, len(p.browser)}, []any{302, "/auth/sign-in", 1})
	flowID := p.flow
	resume := to.Query().Get("next")
	if !strings.HasPrefix(resume, "/oauth2/authorize/resume?flow=flw_") {
		t.Fatalf("next: %s", resume)
	}
	flow := c.with("").want(t, 200, "", "GET", authPath+"/flows/"+flowID, nil).data()
	equal(t, "flow", []any{flow["client"], flow["scopes"], flow["status"]}, []any{object{"name": "App", "logo_uri": nil}, []any{"openid", "profile", "email"}, "sign_in_required"})
	c.with("").want(t, 404, "flow_not_found", "GET", authPath+"/flows/x", nil)
	other := *p
	other.browser = nil
	stolen, _ := other.browse(t, resume)
	equal(t, "another browser", stolen.status, 400)
	other.ask(t, nil) // which has a secret of its own then
	stolen, _ = other.browse(t, resume)
	equal(t, "another browser with requests", []any{len(other.browser), stolen.status}, []any{1, 400})
	p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	a, to = p.browse(t, resume)
	q := to.Query()
	equal(t, "back", []any{a.status, to.Host, to.Path, q.Get("tab"), q.Get("state"), q.Get("iss")}, []any{302, "app.example.com", "/cb", "1", "a b&c=", c.base()})

	got := p.exchange(t, q.Get("code"), nil)
	if got.status != 200 {
		t.Fatalf("exchange: %d %s", got.status, got.text)
	}
	equal(t, "tokens", []any{got.body["token_type"], got.body["scope"], got.header.Get("Cache-Control")}, []any{"Bearer", "openid profile email", "no-store"})
	idToken := claimsOf(t, got.body["id_token"].(string))
	access := claimsOf(t, got.body["access_token"].(string))
	equal(t, "id token", []any{idToken["iss"], idToken["sub"], idToken["aud"], idToken["nonce"], idToken["email"], idToken["name"], idToken["acr"]},
		[]any{c.base(), id, p.id, "n-1", "ann@example.com", "Ann", "aal1"})
	sum := sha256.Sum256([]byte(got.body["access_token"].(string)))
	equal(t, "at_hash", idToken["at_hash"], base64.RawURLEncoding.EncodeToString(sum[:16]))
	equal(t, "access token", []any{access["sub"], access["client_id"], access["aud"], access["sid"] == idToken["sid"]}, []any{id, p.id, c.base(), true})
	user := c.with(got.body["access_token"].(string))
	for _, method := range []string{"GET", "POST"} {
		equal(t, "userinfo", user.want(t, 200, "", method, "/oauth2/userinfo", nil).body["email"], "ann@example.com")
	}
	// The token in the form (RFC 6750 §2.2).
	inForm := func(form url.Values, header http.Header) answer {
		t.Helper()
		h := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
		maps.Copy(h, header)
		return c.with("").send(t, "POST", "/oauth2/userinfo", h, []byte(form.Encode()))
	}
	token := url.Values{"access_token": {user.token}}
	equal(t, "in the form", inForm(token, nil).body["email"], "ann@example.com")
	for what, refused := range map[string]struct {
		a      answer
		status int
		code   string
	}{
		"in both":         {inForm(token, http.Header{"Authorization": {"Bearer " + user.token}}), 400, "invalid_request"},
		"twice":           {inForm(url.Values{"access_token": {user.token, user.token}}, nil), 400, "invalid_request"},
		"no form":         {c.with("").send(t, "POST", "/oauth2/userinfo", http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, []byte("%zz")), 400, "invalid_request"},
		"too large":       {inForm(url.Values{"access_token": {strings.Repeat("x", 65<<10)}}, nil), 413, "payload_too_large"},
		"empty":           {inForm(url.Values{"access_token": {""}}, nil), 401, "unauthenticated"},
		"nonsense":        {inForm(url.Values{"access_token": {"x"}}, nil), 401, "invalid_token"},
		"without openid":  {inForm(url.Values{"access_token": {c.token}}, nil), 403, "insufficient_scope"},
		"with GET":        {c.with("").send(t, "GET", "/oauth2/userinfo?"+token.Encode(), http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, []byte(token.Encode())), 401, "unauthenticated"},
		"in the query":    {c.with("").send(t, "POST", "/oauth2/userinfo?"+token.Encode(), nil, nil), 401, "unauthenticated"},
		"in JSON":         {user.send(t, "POST", "/oauth2/userinfo", http.Header{"Authorization": {"Bearer " + user.token}, "Content-Type": {"application/json"}}, []byte("{}")), 415, "unsupported_media_type"},
		"other endpoints": {c.with("").send(t, "POST", "/api/v1/resources/check", http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, []byte(token.Encode())), 401, "unauthenticated"},
	} {
		equal(t, what, []any{refused.a.status, refused.a.code()}, []any{refused.status, refused.code})
		if challenged := refused.a.header.Get("WWW-Authenticate") != ""; challenged != (refused.status < 404) {
			t.Errorf("%s: challenged: %v", what, challenged)
		}
	}
	c.want(t, 403, "insufficient_scope", "GET", "/oauth2/userinfo", nil)
	c.with(got.body["id_token"].(string)).want(t, 401, "invalid_token", "GET", "/oauth2/userinfo", nil)

	// A wrong request does not consume the code. A second use revokes the grant.
	thief := newParty(t, c, object{"name": "Thief"})
	elsewhere := newParty(t, w.tenant(t, "authorization-code-other"), nil)
	code := p.code(t, nil)
	for what, a := range map[string]answer{
		"verifier": p.exchange(t, code, url.Values{"code_verifier": {strings.Repeat("x", 43)}}), "no verifier": p.exchange(t, code, url.Values{"code_verifier": nil}),
		"redirect_uri": p.exchange(t, code, url.Values{"redirect_uri": {callback + "/"}}), "no redirect_uri": p.exchange(t, code, url.Values{"redirect_uri": nil}),
		"client": thief.exchange(t, code, nil), "tenant": elsewhere.exchange(t, code, nil), "code": p.exchange(t, code+"x", nil),
	} {
		equal(t, what, a.code(), "invalid_grant")
	}
	first := p.exchange(t, code, nil)
	equal(t, "then", first.status, 200)
	equal(t, "replayed by a thief", thief.exchange(t, code, nil).code(), "invalid_grant")
	c.with(first.body["access_token"].(string)).want(t, 200, "", "GET", "/oauth2/userinfo", nil)
	equal(t, "replayed", p.exchange(t, code, nil).code(), "invalid_grant")
	equal(t, "revoked", c.with(first.body["access_token"].(string)).want(t, 401, "invalid_token", "GET", "/oauth2/userinfo", nil).details()["reason"], "revoked")
	equal(t, "refresh", p.refresh(t, first.body["refresh_token"].(string), nil).code(), "invalid_grant")

	// Of 100 parallel requests, one gets tokens, which the replays revoke.
	code = p.code(t, nil)
	var wg sync.WaitGroup
	statuses := make(chan int, 100)
	for range cap(statuses) {
		wg.Go(func() { statuses <- p.exchange(t, code, nil).status })
	}
	wg.Wait()
	close(statuses)
	won := 0
	for status := range statuses {
		if status == 200 {
			won++
		}
	}
	equal(t, "exchanges that won", won, 1)

	// A code expires after a minute, a stored authorization request after half an hour.
	code = p.code(t, nil)
	if _, err := w.db.Exec(t.Context(), `UPDATE codes SET expires_at = $1`, time.Now().UnixMicro()); err != nil {
		t.Fatal(err)
	}
	equal(t, "late", p.exchange(t, code, nil).code(), "invalid_grant")
	if _, err := w.db.Exec(t.Context(), `UPDATE authorization_requests SET expires_at = $1`, time.Now().UnixMicro()); err != nil {
		t.Fatal(err)
	}
	c.with("").want(t, 410, "flow_expired", "GET", authPath+"/flows/"+flowID, nil)
	late, _ := p.browse(t, resume)
	equal(t, "late", late.status, 400)
	equal(t, "events", w.types(t, c, "security.authorization", "token."), []string{
		"security.authorization_code_reused", "token.family_revoked", "security.authorization_code_reused", "token.family_revoked",
	})
}

// pendingFlows keeps any number of authorization requests in one browser, and refuses them in
// another.
func pendingFlows(t *testing.T, _ *world, c *client) {
	member(t, c, "ann@example.com")
	member(t, c, "eve@example.com")
	p := newParty(t, c, nil)
	site := newParty(t, c, object{"name": "Another site", "redirect_uris": []any{"https://other.example.com/cb"}})
	site.browser = p.browser
	var pending []string
	for _, state := range []string{"first", "second", "third"} {
		_, to := p.ask(t, url.Values{"state": {state}})
		pending = append(pending, to.Query().Get("next"))
	}
	_, to := p.ask(t, url.Values{"client_id": {site.id}, "redirect_uri": {"https://other.example.com/cb"}, "state": {"fourth"}})
	pending = append(pending, to.Query().Get("next"))
	equal(t, "secrets of the browser", len(p.browser), 1)
	p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	for i, state := range []string{"first", "second", "third", "fourth"} {
		a, to := p.browse(t, pending[i])
		equal(t, state, []any{a.status, to.Query().Get("state"), to.Query().Get("code") != ""}, []any{302, state, true})
	}

	// Tabs that begin at the same time have a secret each, which do not replace each other.
	var tabs [2]relyingParty
	var at [2]*url.URL
	for i := range tabs {
		tabs[i] = relyingParty{client: p.client, id: p.id}
		_, at[i] = tabs[i].ask(t, nil)
	}
	both := relyingParty{client: p.client, id: p.id, session: p.session, browser: append(tabs[0].browser, tabs[1].browser...)}
	for i := range at {
		_, to := both.browse(t, at[i].Query().Get("next"))
		equal(t, "one of two tabs", to.Query().Get("code") != "", true)
	}

	// An attacker's authorization request that the victim completes is refused for both.
	attacker := relyingParty{client: p.client, id: p.id}
	_, to = attacker.ask(t, url.Values{"state": {"attacker"}})
	lure := to.Query().Get("next")
	for what, victim := range map[string]relyingParty{"signed in": *p, "signed out": {client: p.client, id: p.id, browser: p.browser}} {
		a, to := victim.browse(t, lure)
		equal(t, what, []any{a.status, to.String()}, []any{400, ""})
	}
	_, to = attacker.browse(t, lure)
	equal(t, "the attacker still has to sign in", to.Path, "/auth/sign-in")
	attacker.session = signIn(t, c, "eve@example.com", secret, "complete").data()["session_token"].(string)
	_, to = attacker.browse(t, lure)
	equal(t, "as the attacker", claimsOf(t, p.exchange(t, to.Query().Get("code"), nil).body["id_token"].(string))["email"], "eve@example.com")
	// The secret is accepted only as a cookie of the browser.
	for _, planted := range []string{"__Host-oauth=" + attacker.flow, "__Host-oauth-x=", "__Host-oauth-x=x", "oauth-x=" + attacker.browser[0]} {
		victim := relyingParty{client: p.client, id: p.id, session: p.session, browser: []string{planted}}
		a, _ := victim.browse(t, lure)
		equal(t, planted, a.status, 400)
	}
}

// contexts treats acr_values as a preference, and as a requirement with max_age.
func contexts(t *testing.T, w *world, c *client) {
	w.ahead.Store(0)
	member(t, c, "ann@example.com")
	member(t, c, "bob@example.com")
	p := newParty(t, c, nil)
	acr := func(code string) any {
		t.Helper()
		return claimsOf(t, p.exchange(t, code, nil).body["id_token"].(string))["acr"]
	}
	// Without a factor, a preference is not met; the claim tells.
	p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	for _, values := range []string{"aal2", "aal2 aal1", "aal1 aal2", "aal3 aal2", "urn:unknown"} {
		equal(t, values, acr(p.code(t, url.Values{"acr_values": {values}})), "aal1")
		equal(t, values+" unasked", acr(p.code(t, url.Values{"acr_values": {values}, "prompt": {"none"}})), "aal1")
	}
	equal(t, "aal1 will do", acr(p.code(t, url.Values{"acr_values": {"aal2 aal1"}, "max_age": {"900"}})), "aal1")
	// A requirement of step-up leads to the enrolment of a factor, and then back.
	_, to := p.ask(t, url.Values{"acr_values": {"aal2"}, "max_age": {"900"}})
	equal(t, "enrol", []any{to.Path, to.Query().Get("done")}, []any{"/account/security", "enrol"})
	resume := to.Query().Get("next")
	key, _ := enrol(t, w, c.with(p.session))
	_, to = p.browse(t, resume)
	equal(t, "enrolled", acr(to.Query().Get("code")), "aal2")

	// A user with a factor is asked for it, except with prompt=none or a preference for aal1.
	w.later(time.Minute)
	waiting := signIn(t, c, "ann@example.com", secret, "mfa_required").data()["mfa_token"]
	verified := c.with("").want(t, 200, "", "POST", authPath+"/mfa/verify", object{"mfa_token": waiting, "kind": "totp", "code": code(t, key, w.now()), "remember_device": true})
	device := http.Header{"Content-Type": {"application/json"}}
	for _, text := range verified.header["Set-Cookie"] {
		pair, _, _ := strings.Cut(text, ";")
		device.Add("Cookie", pair)
	}
	p.session = c.with("").send(t, "POST", authPath+"/sign-in", device, []byte(`{"email":"ann@example.com","password":"`+secret+`"}`)).data()["session_token"].(string)
	_, to = p.ask(t, url.Values{"acr_values": {"aal2"}})
	equal(t, "step up", to.Path, "/account/step-up")
	_, to = p.ask(t, url.Values{"acr_values": {"aal2"}, "max_age": {"900"}})
	equal(t, "step up (RFC 9470)", to.Path, "/account/step-up")
	equal(t, "nobody may be asked", acr(p.code(t, url.Values{"acr_values": {"aal2"}, "prompt": {"none"}})), "aal1")
	equal(t, "aal1 first", acr(p.code(t, url.Values{"acr_values": {"aal1 aal2"}})), "aal1")
	_, to = p.ask(t, url.Values{"acr_values": {"aal2"}, "max_age": {"900"}, "prompt": {"none"}})
	equal(t, "demanded of nobody", to.Query().Get("error"), "unmet_authentication_requirements")

	// With second factors off, the requirement cannot be met.
	w.ahead.Store(0)
	p.session = signIn(t, c, "bob@example.com", secret, "complete").data()["session_token"].(string)
	c.want(t, 200, "", "PATCH", "/api/v1/settings", object{"mfa_policy": object{"mode": "off"}})
	_, to = p.ask(t, url.Values{"acr_values": {"aal2"}, "max_age": {"900"}})
	equal(t, "no way", to.Query().Get("error"), "unmet_authentication_requirements")
	equal(t, "and no preference", acr(p.code(t, url.Values{"acr_values": {"aal2"}})), "aal1")

	// A large max_age accepts any session.
	for _, age := range []string{"9223372036", "9223372037", "99999999999", "9223372036854775807", "9223372036854775808", strings.Repeat("9", 100)} {
		p.code(t, url.Values{"max_age": {age}})
	}
}

func refreshTokens(t *testing.T, w *world, c *client) {
	id := member(t, c, "ann@example.com")
	token := signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	p := newParty(t, c, object{"type": "spa"}) // without a secret
	p.session = token
	issue := func(scope string) (refresh string) {
		t.Helper()
		a := p.exchange(t, p.code(t, url.Values{"scope": {scope}}), nil)
		if a.status != 200 {
			t.Fatalf("%d %s", a.status, a.text)
		}
		return a.body["refresh_token"].(string)
	}
	renew := func(token string) answer {
		t.Helper()
		a := p.refresh(t, token, nil)
		if a.status != 200 {
			t.Fatalf("refresh: %d %s", a.status, a.text)
		}
		return a
	}
	first := issue("openid email me:read me:write")
	second := renew(first)
	idToken := claimsOf(t, second.body["id_token"].(string))
	equal(t, "nonce again", idToken["nonce"], nil)
	equal(t, "scope", second.body["scope"], "openid email me:read me:write")
	c.with(second.body["access_token"].(string)).want(t, 200, "", "GET", mePath+"/profile", nil)

	// The scope can be narrowed, never widened, and only by the application.
	third := p.refresh(t, second.body["refresh_token"].(string), url.Values{"grant_type": {"refresh"}, "scope": {"me:read"}})
	equal(t, "narrower", []any{third.status, third.body["scope"], third.body["id_token"]}, []any{200, "me:read", nil})
	equal(t, "wider", p.refresh(t, third.body["refresh_token"].(string), url.Values{"scope": {"me:read profile"}}).code(), "invalid_scope")
	thief := newParty(t, c, object{"name": "Thief", "type": "spa"})
	equal(t, "thief", thief.refresh(t, third.body["refresh_token"].(string), nil).code(), "invalid_grant")
	fourth := renew(third.body["refresh_token"].(string))
	equal(t, "all again", fourth.body["scope"], "openid email me:read me:write")

	// Use of a replaced token ends the family.
	equal(t, "reused", p.refresh(t, first, nil).code(), "invalid_grant")
	equal(t, "the newest", p.refresh(t, fourth.body["refresh_token"].(string), nil).code(), "invalid_grant")
	c.with(fourth.body["access_token"].(string)).want(t, 401, "invalid_token", "GET", mePath+"/profile", nil)

	// Of two parallel uses, one succeeds, and the family ends.
	both := issue("openid")
	var wg sync.WaitGroup
	answers := make(chan answer, 2)
	for range 2 {
		wg.Go(func() { answers <- p.refresh(t, both, nil) })
	}
	wg.Wait()
	one, two := <-answers, <-answers
	equal(t, "one wins", one.status+two.status, 200+400)

	// The next token has the scopes of the user's groups at that time.
	grouped := issue("openid users:read")
	g := group(t, c, "readers", "users:read")
	c.want(t, 201, "", "POST", groupsPath+"/"+g+"/members", object{"user_id": id})
	now := renew(grouped)
	equal(t, "with the group", now.body["scope"], "openid users:read")
	c.with(now.body["access_token"].(string)).want(t, 200, "", "GET", "/api/v1/users", nil)
	c.want(t, 204, "", "DELETE", groupsPath+"/"+g+"/members/"+id, nil)
	now = renew(now.body["refresh_token"].(string))
	equal(t, "without", now.body["scope"], "openid")

	// Refresh tokens end with the session unless they have offline_access. Disabling the user
	// ends both.
	online, offline := issue("openid"), issue("openid offline_access")
	c.with(token).want(t, 204, "", "POST", authPath+"/logout", nil)
	equal(t, "online", p.refresh(t, online, nil).code(), "invalid_grant")
	left := renew(offline)
	c.with(left.body["access_token"].(string)).want(t, 200, "", "GET", "/oauth2/userinfo", nil)
	// A new password ends both kinds and their access tokens, except those of the session in
	// which it was changed.
	p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	kept, gone := issue("openid"), issue("openid offline_access")
	c.with(p.session).want(t, 204, "", "POST", mePath+"/password", object{"current": secret, "next": "another long secret"})
	renew(kept) // of the session in which the password was changed
	equal(t, "offline, one's own new password", p.refresh(t, gone, nil).code(), "invalid_grant")
	before := p.exchange(t, p.code(t, url.Values{"scope": {"openid offline_access"}}), nil)
	c.want(t, 200, "", "PATCH", "/api/v1/users/"+id, object{"password": nil})
	c.want(t, 200, "", "PATCH", "/api/v1/users/"+id, object{"password": secret})
	equal(t, "offline, another password", p.refresh(t, before.body["refresh_token"].(string), nil).code(), "invalid_grant")
	c.with(before.body["access_token"].(string)).want(t, 401, "invalid_token", "GET", "/oauth2/userinfo", nil)
	p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	left = renew(issue("openid offline_access"))
	c.want(t, 200, "", "POST", "/api/v1/users/"+id+"/disable", nil)
	equal(t, "disabled", p.refresh(t, left.body["refresh_token"].(string), nil).code(), "invalid_grant")
	equal(t, "userinfo", c.with(left.body["access_token"].(string)).want(t, 401, "invalid_token", "GET", "/oauth2/userinfo", nil).details()["reason"], "revoked")
	equal(t, "events", w.types(t, c, "security.refresh"), []string{"security.refresh_token_reused", "security.refresh_token_reused"})
}

func authorizeRefuses(t *testing.T, w *world, c *client) {
	w.ahead.Store(0) // both clocks count here
	member(t, c, "ann@example.com")
	p := newParty(t, c, object{"allowed_scopes": []any{"openid", "resources:read"}})
	p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	foreign := newParty(t, w.tenant(t, "authorize-refuses-other"), nil)

	// There is no redirect to an unregistered URI.
	for what, changes := range map[string]url.Values{
		"no client": {"client_id": nil}, "unknown client": {"client_id": {"nobody"}}, "another tenant's client": {"client_id": {foreign.id}}, "two clients": {"client_id": {p.id, p.id}},
		"no redirect_uri": {"redirect_uri": nil}, "two": {"redirect_uri": {callback, callback}}, "NUL": {"client_id": {p.id + "\x00"}},
		"trailing slash": {"redirect_uri": {"https://app.example.com/cb/?tab=1"}}, "port": {"redirect_uri": {"https://app.example.com:443/cb?tab=1"}}, "scheme": {"redirect_uri": {"http://app.example.com/cb?tab=1"}},
		"case": {"redirect_uri": {"https://APP.example.com/cb?tab=1"}}, "more query": {"redirect_uri": {callback + "&x=1"}}, "less": {"redirect_uri": {"https://app.example.com/cb"}}, "fragment": {"redirect_uri": {callback + "#x"}},
		"dots": {"redirect_uri": {"https://app.example.com/x/../cb?tab=1"}}, "userinfo": {"redirect_uri": {"https://app.example.com@evil.test/cb?tab=1"}}, "suffix": {"redirect_uri": {"https://app.example.com.evil.test/cb?tab=1"}},
		"tab": {"redirect_uri": {"https://app.example.com\t/cb?tab=1"}}, "encoded": {"redirect_uri": {"https://app.example.com/%63b?tab=1"}},
	} {
		a, _ := p.ask(t, changes)
		if a.status != 400 || a.header.Get("Location") != "" || !strings.Contains(a.header.Get("Content-Type"), "text/html") || a.header.Get("X-Frame-Options") != "DENY" {
			t.Errorf("%s: %d to %q", what, a.status, a.header.Get("Location"))
		}
	}
	for what, tc := range map[string]struct {
		code    string
		changes url.Values
	}{
		"no response_type": {"invalid_request", url.Values{"response_type": nil}}, "implicit": {"unsupported_response_type", url.Values{"response_type": {"token"}}},
		"no state": {"invalid_request", url.Values{"state": nil}}, "two nonces": {"invalid_request", url.Values{"nonce": {"a", "b"}}}, "long state": {"invalid_request", url.Values{"state": {long(2049)}}},
		"no challenge": {"invalid_request", url.Values{"code_challenge": nil}}, "plain": {"invalid_request", url.Values{"code_challenge_method": {"plain"}}}, "no method": {"invalid_request", url.Values{"code_challenge_method": nil}},
		"short challenge": {"invalid_request", url.Values{"code_challenge": {"x"}}}, "fragment": {"invalid_request", url.Values{"response_mode": {"fragment"}}}, "request": {"invalid_request_object", url.Values{"request": {"x"}}},
		"request_uri": {"request_uri_not_supported", url.Values{"request_uri": {"https://app.example.com/request"}}}, "two request_uris": {"invalid_request", url.Values{"request_uri": {"x", "y"}}},
		"scope": {"invalid_scope", url.Values{"scope": {"users:write"}}}, "malformed scope": {"invalid_scope", url.Values{"scope": {"a\"b"}}}, "audience": {"invalid_target", url.Values{"audience": {"https://other.example.com"}}},
		"prompt": {"invalid_request", url.Values{"prompt": {"now"}}}, "none and more": {"invalid_request", url.Values{"prompt": {"none login"}}}, "max_age": {"invalid_request", url.Values{"max_age": {"-1"}}}, "max_age is no number": {"invalid_request", url.Values{"max_age": {"1h"}}},
		"no second factor": {"unmet_authentication_requirements", url.Values{"prompt": {"none"}, "acr_values": {"aal2"}, "max_age": {"900"}}}, "too old": {"login_required", url.Values{"prompt": {"none"}, "max_age": {"0"}}},
	} {
		if what == "too old" {
			time.Sleep(1100 * time.Millisecond)
		}
		a, to := p.ask(t, tc.changes)
		q := to.Query()
		state := "a b&c="
		if what == "no state" || what == "long state" {
			state = ""
		}
		if a.status != 302 || to.Host != "app.example.com" || q.Get("error") != tc.code || q.Get("iss") != c.base() || q.Get("state") != state || q.Get("code") != "" {
			t.Errorf("%s: %d to %s, want %s", what, a.status, to, tc.code)
		}
	}
	// Scopes that the application may not have are dropped; the response states the rest.
	a := p.exchange(t, p.code(t, url.Values{"scope": {"openid users:write resources:read"}}), nil)
	equal(t, "scope", a.body["scope"], "openid") // resources:read comes with a group only

	// prompt=none never shows a page; without a session it answers login_required.
	session := p.session
	p.session = ""
	_, to := p.ask(t, url.Values{"prompt": {"none"}})
	equal(t, "none", to.Query().Get("error"), "login_required")
	// Other prompts lead to a page, and then back.
	p.session = session
	for prompt, path := range map[string]string{"login": "/auth/sign-in", "create": "/auth/sign-up"} {
		_, to := p.ask(t, url.Values{"prompt": {prompt}})
		equal(t, prompt, to.Path, path)
		_, again := p.browse(t, to.Query().Get("next"))
		equal(t, "not yet", again.Path, path)
	}
	_, to = p.ask(t, url.Values{"prompt": {"login"}, "login_hint": {"ann@example.com"}})
	equal(t, "hint", to.Query().Get("email"), "ann@example.com")
	next := to.Query().Get("next")
	p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	_, to = p.browse(t, next)
	if to.Query().Get("code") == "" {
		t.Errorf("after signing in again: %s", to)
	}

	// By POST the redirect is a GET.
	post := p.send(t, "POST", "/oauth2/authorize", http.Header{"Cookie": {"__Host-sid=" + p.session}, "Content-Type": {"application/x-www-form-urlencoded"}}, []byte(p.request(nil).Encode()))
	equal(t, "post", post.status, 303)
	// A POST from another site has no cookie; the GET that follows has it.
	post = p.send(t, "POST", "/oauth2/authorize", http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, []byte(p.request(nil).Encode()))
	equal(t, "post without a cookie", []any{post.status, strings.HasPrefix(post.header.Get("Location"), "/oauth2/authorize/resume?flow=flw_")}, []any{303, true})
	p.keep(t, post)
	_, to = p.browse(t, post.header.Get("Location"))
	equal(t, "and then", to.Query().Get("code") != "", true)
	large := p.send(t, "POST", "/oauth2/authorize", http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, []byte(p.request(url.Values{"nonce": {long(70_000)}}).Encode()))
	equal(t, "too large", large.status, 400)

	// response_mode=form_post, for a code and for an error.
	for what, tc := range map[string]struct {
		member  string
		changes url.Values
	}{"code": {"code", nil}, "refusal": {"error", url.Values{"response_type": {"token"}}}} {
		changes := url.Values{"response_mode": {"form_post"}, "state": {`"><script>alert(1)</script>`}}
		maps.Copy(changes, tc.changes)
		a, _ := p.ask(t, changes)
		fields := hiddenFields(a.text)
		equal(t, what, []any{a.status, a.header.Get("Location"), fields["state"], fields["iss"], fields[tc.member] != "", a.header.Get("Cache-Control")},
			[]any{200, "", `"><script>alert(1)</script>`, c.base(), true, "no-store"})
		if !strings.Contains(a.text, `action="https://app.example.com/cb?tab=1"`) || strings.Contains(a.text, "<script>alert") || !strings.HasPrefix(a.header.Get("Content-Security-Policy"), "default-src 'none'; script-src 'sha256-") {
			t.Errorf("%s: %s\n%s", what, a.header, a.text)
		}
	}
	post = p.send(t, "POST", "/oauth2/authorize", http.Header{"Cookie": {"__Host-sid=" + p.session}, "Content-Type": {"application/x-www-form-urlencoded"}}, []byte(p.request(url.Values{"response_mode": {"form_post"}}).Encode()))
	equal(t, "post, answered in a form", []any{post.status, hiddenFields(post.text)["code"] != ""}, []any{200, true})

	// Applications that are disabled or act for themselves.
	machine := newParty(t, c, object{"type": "m2m"})
	_, to = machine.ask(t, nil)
	equal(t, "machine", to.Query().Get("error"), "unauthorized_client")
	equal(t, "machine", machine.exchange(t, "x", nil).code(), "unauthorized_client")
	code := p.code(t, nil)
	found, err := w.oauth.Clients.ByClientID(t.Context(), mustTenant(t, w, c), p.id)
	if err != nil {
		t.Fatal(err)
	}
	c.want(t, 200, "", "POST", appsPath+"/"+found.ID+"/disable", nil)
	_, to = p.ask(t, nil)
	equal(t, "disabled", to.Query().Get("error"), "unauthorized_client")
	equal(t, "disabled", p.exchange(t, code, nil).code(), "unauthorized_client")
}

// hiddenFields are those of a form.
func hiddenFields(page string) map[string]string {
	fields := map[string]string{}
	for _, m := range regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`).FindAllStringSubmatch(page, -1) {
		fields[m[1]] = html.UnescapeString(m[2])
	}
	return fields
}

func pushedRequests(t *testing.T, w *world, c *client) {
	w.ahead.Store(0) // both clocks count here
	member(t, c, "ann@example.com")
	p, other := newParty(t, c, nil), newParty(t, c, object{"name": "Other"})
	page := newParty(t, c, object{"name": "Page", "type": "spa"})
	p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	page.session, other.session = p.session, p.session
	const par = "/oauth2/par"
	push := func(by *relyingParty, changes url.Values) answer {
		t.Helper()
		form := by.request(changes)
		var h http.Header
		if by.secret != "" {
			h = basic(by.id, by.secret)
		}
		return by.present(t, par, h, form)
	}
	refer := func(by *relyingParty, requestURI any, more url.Values) (answer, *url.URL) {
		t.Helper()
		v := url.Values{"client_id": {by.id}, "request_uri": {requestURI.(string)}}
		maps.Copy(v, more)
		return by.browse(t, "/oauth2/authorize?"+v.Encode())
	}

	for _, by := range []*relyingParty{p, page} {
		a := push(by, nil)
		equal(t, "pushed", []any{a.status, a.body["expires_in"], a.header.Get("Cache-Control"), strings.HasPrefix(a.body["request_uri"].(string), "urn:ietf:params:oauth:request_uri:")}, []any{201, 90.0, "no-store", true})
		// A request of another client is not found and not consumed. Parameters of the browser
		// are ignored.
		stolen, _ := refer(other, a.body["request_uri"], nil)
		equal(t, "another client", stolen.status, 400)
		_, to := refer(by, a.body["request_uri"], url.Values{"scope": {"me:write"}, "state": {"theirs"}, "redirect_uri": {"https://evil.test/"}, "code_challenge": {strings.Repeat("x", 43)}})
		equal(t, "back", []any{to.Host, to.Query().Get("state"), to.Query().Get("iss")}, []any{"app.example.com", "a b&c=", c.base()})
		got := by.exchange(t, to.Query().Get("code"), nil)
		equal(t, "tokens", []any{got.status, got.body["scope"]}, []any{200, "openid profile email"})
		again, _ := refer(by, a.body["request_uri"], nil)
		equal(t, "twice", []any{again.status, again.header.Get("Location")}, []any{400, ""})
	}

	// Of parallel uses, one succeeds.
	requestURI := push(p, nil).body["request_uri"]
	var wg sync.WaitGroup
	codes := make(chan string, 20)
	for range cap(codes) {
		wg.Go(func() {
			browser := *p
			_, to := refer(&browser, requestURI, nil)
			codes <- to.Query().Get("code")
		})
	}
	wg.Wait()
	close(codes)
	won := 0
	for code := range codes {
		if code != "" {
			won++
		}
	}
	equal(t, "requests that went on", won, 1)

	// A user who has to sign in first keeps the request, however long that takes.
	requestURI = push(p, url.Values{"response_mode": {"form_post"}}).body["request_uri"]
	session := p.session
	p.session = ""
	_, to := refer(p, requestURI, nil)
	equal(t, "sign in", to.Path, "/auth/sign-in")
	p.session = session
	if _, err := w.db.Exec(t.Context(), `DELETE FROM authorization_requests WHERE expires_at < $1`, time.Now().Add(5*time.Minute).UnixMicro()); err != nil {
		t.Fatal(err)
	}
	a, _ := p.browse(t, to.Query().Get("next"))
	equal(t, "resumed", hiddenFields(a.text)["code"] != "", true)

	for what, requestURI := range map[string]string{"unknown": "urn:ietf:params:oauth:request_uri:x", "an address": "https://evil.test/request", "a flow": p.flow, "empty": ""} {
		a, _ := refer(p, requestURI, nil)
		equal(t, what, []any{a.status, a.header.Get("Location")}, []any{400, ""})
	}
	requestURI = push(p, nil).body["request_uri"]
	if _, err := w.db.Exec(t.Context(), `UPDATE authorization_requests SET expires_at = $1`, time.Now().UnixMicro()); err != nil {
		t.Fatal(err)
	}
	late, _ := refer(p, requestURI, nil)
	equal(t, "late", late.status, 400)
	c.with("").want(t, 404, "flow_not_found", "GET", authPath+"/flows/"+url.PathEscape(requestURI.(string)), nil)

	for what, tc := range map[string]struct {
		code    string
		changes url.Values
	}{
		"redirect_uri": {"invalid_request", url.Values{"redirect_uri": {"https://evil.test/"}}}, "no redirect_uri": {"invalid_request", url.Values{"redirect_uri": nil}},
		"request_uri": {"invalid_request", url.Values{"request_uri": {requestURI.(string)}}}, "another client": {"invalid_request", url.Values{"client_id": {other.id}}},
		"PKCE": {"invalid_request", url.Values{"code_challenge": nil}}, "twice": {"invalid_request", url.Values{"scope": {"openid", "email"}}}, "implicit": {"unsupported_response_type", url.Values{"response_type": {"token"}}},
		"scope": {"invalid_scope", url.Values{"scope": {"users:write"}}}, "audience": {"invalid_target", url.Values{"resource": {"https://other.example.com"}}}, "request": {"invalid_request_object", url.Values{"request": {"x"}}},
	} {
		a := push(p, tc.changes)
		equal(t, what, []any{a.status, a.code()}, []any{400, tc.code})
	}
	machine := newParty(t, c, object{"name": "Machine", "type": "m2m"})
	equal(t, "machine", push(machine, nil).code(), "unauthorized_client")
	machine.secret = "wrong"
	equal(t, "wrong secret", push(machine, nil).code(), "invalid_client")

	// An application that is disabled in the meantime gets an error.
	requestURI = push(p, nil).body["request_uri"]
	found, err := w.oauth.Clients.ByClientID(t.Context(), mustTenant(t, w, c), p.id)
	if err != nil {
		t.Fatal(err)
	}
	c.want(t, 200, "", "POST", appsPath+"/"+found.ID+"/disable", nil)
	_, to = refer(p, requestURI, nil)
	equal(t, "disabled", to.Query().Get("error"), "unauthorized_client")
}

func mustTenant(t testing.TB, w *world, c *client) string {
	t.Helper()
	tenant, err := w.tenants.TenantByHost(t.Context(), c.host)
	if err != nil {
		t.Fatal(err)
	}
	return tenant.ID
}

// claimsOf reads a JWT that another party verifies.
func claimsOf(t testing.TB, token string) object {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("not a JWT: %s", token)
	}
	return parse(t, string(decode(t, parts[1]))).(map[string]any)
}

// elsewhere sends requests for a tenant's own address to the server of the test.
type elsewhere struct{ *client }

func (e elsewhere) RoundTrip(r *http.Request) (*http.Response, error) {
	to, err := url.Parse(e.server.URL)
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Host, r.URL.Scheme, r.URL.Host = r.URL.Host, to.Scheme, to.Host
	return http.DefaultTransport.RoundTrip(r)
}

// independentClient signs a user in with go-oidc and x/oauth2: discovery, PKCE, the pages, the
// ID token, userinfo and a refresh.
func independentClient(t *testing.T, _ *world, c *client) {
	id := member(t, c, "ann@example.com")
	p := newParty(t, c, nil)
	browser := &http.Client{Transport: elsewhere{c}, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if r.URL.Host == "app.example.com" {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser.Jar = jar
	ctx := oidc.ClientContext(t.Context(), &http.Client{Transport: elsewhere{c}})
	provider, err := oidc.NewProvider(ctx, "https://"+c.host)
	if err != nil {
		t.Fatal(err)
	}
	config := oauth2.Config{ClientID: p.id, ClientSecret: p.secret, Endpoint: provider.Endpoint(), RedirectURL: callback, Scopes: []string{oidc.ScopeOpenID, "profile", "email"}}
	pkce := oauth2.GenerateVerifier()
	page, err := browser.Get(config.AuthCodeURL("some state", oauth2.S256ChallengeOption(pkce), oidc.Nonce("some nonce")))
	if err != nil {
		t.Fatal(err)
	}
	page.Body.Close()
	if page.StatusCode != 200 || page.Request.URL.Path != "/auth/sign-in" {
		t.Fatalf("%d at %s", page.StatusCode, page.Request.URL)
	}
	back, err := browser.PostForm("https://"+c.host+"/auth/sign-in", url.Values{
		"email": {"ann@example.com"}, "password": {secret}, "next": {page.Request.URL.Query().Get("next")},
	})
	if err != nil {
		t.Fatal(err)
	}
	back.Body.Close()
	at, err := back.Location()
	if err != nil || at.Host != "app.example.com" || at.Query().Get("state") != "some state" || at.Query().Get("iss") != "https://"+c.host {
		t.Fatalf("back at %v, %v", at, err)
	}
	tokens, err := config.Exchange(ctx, at.Query().Get("code"), oauth2.VerifierOption(pkce))
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := tokens.Extra("id_token").(string)
	idToken, err := provider.Verifier(&oidc.Config{ClientID: p.id}).Verify(ctx, raw)
	if err != nil || idToken.Subject != id || idToken.Nonce != "some nonce" {
		t.Fatalf("%+v, %v", idToken, err)
	}
	if err := idToken.VerifyAccessToken(tokens.AccessToken); err != nil {
		t.Error(err)
	}
	user, err := provider.UserInfo(ctx, oauth2.StaticTokenSource(tokens))
	if err != nil || user.Subject != id || user.Email != "ann@example.com" || !user.EmailVerified {
		t.Errorf("%+v, %v", user, err)
	}
	tokens.Expiry = time.Now().Add(-time.Minute)
	renewed, err := config.TokenSource(ctx, tokens).Token()
	if err != nil || renewed.AccessToken == tokens.AccessToken || renewed.RefreshToken == tokens.RefreshToken {
		t.Errorf("%+v, %v", renewed, err)
	}
}
