package api_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// signedOutPage is the page after a sign-out that leads nowhere else.
const signedOutPage = "/auth/sign-in?done=out"

// goodbye is a post_logout_redirect_uri.
const goodbye = "https://app.example.com/post_logout_redirect"

// logoutSuite tests a plan about logout.
type logoutSuite struct {
	*opSuite
	idToken string
}

func newLogoutSuite(t *testing.T, w *world, c *client, form object) *logoutSuite {
	t.Helper()
	return &logoutSuite{opSuite: newSuite(t, w, c, "", joinedObjects(object{"post_logout_redirect_uris": []any{goodbye}}, form))}
}

// enter signs the user in to the first client.
func (s *logoutSuite) enter(t *testing.T) (claims object) {
	t.Helper()
	s.signIn(t)
	tokens, claims := s.flow(t, nil)
	s.idToken = tokens["id_token"].(string)
	return claims
}

// params are the parameters of a complete request.
func (s *logoutSuite) params(changes url.Values) url.Values {
	return joined(url.Values{"id_token_hint": {s.idToken}, "post_logout_redirect_uri": {goodbye}, "state": {"s-1"}}, changes)
}

// leave sends the user to the end_session_endpoint.
func (s *logoutSuite) leave(t *testing.T, v url.Values) (answer, *url.URL) {
	t.Helper()
	return s.first.browse(t, logoutPath+"?"+v.Encode())
}

// in reports whether the user is signed in, as the suite finds out: with prompt=none.
func (s *logoutSuite) in(t *testing.T) bool {
	t.Helper()
	_, _, response := s.visit(t, s.first, url.Values{"prompt": {"none"}})
	if response.Has("code") == (response.Get("error") == "login_required") {
		t.Fatalf("response: %v", response)
	}
	return response.Has("code")
}

// redirects returns a test that a request signs the user out and leads to an address.
func (s *logoutSuite) redirects(changes url.Values, to string) func(t *testing.T) {
	return func(t *testing.T) {
		s.enter(t)
		a, at := s.leave(t, s.params(changes))
		equal(t, "out", []any{a.status, at.String(), s.in(t)}, []any{302, to, false})
	}
}

// asks returns a test that a request leads to a page, and not to the client; without a confirmation the
// user stays signed in, and with it is signed out, and does not get to the client either.
func (s *logoutSuite) asks(change func(v url.Values)) func(t *testing.T) {
	return func(t *testing.T) {
		s.enter(t)
		v := s.params(nil)
		change(v)
		_, at := s.leave(t, v)
		equal(t, "asked", []any{at.Path, s.in(t)}, []any{"/auth/sign-out", true})
		said := s.c.visit(t, "POST", "/auth/sign-out", asBrowser(s.first.session), url.Values{"next": {at.Query().Get("next")}})
		equal(t, "confirmed", []any{said.status, s.in(t)}, []any{303, false})
		_, at = s.first.browse(t, said.header.Get("Location"))
		equal(t, "at last", at.String(), signedOutPage)
	}
}

// rpInitiatedLogoutOP is the plan for the profile RP-Initiated Logout OP.
func rpInitiatedLogoutOP(t *testing.T, w *world, c *client) {
	s := newLogoutSuite(t, w, c, nil)
	plan{"oidcc-rp-initiated-logout-certification-test-plan", []string{
		"oidcc-rp-initiated-logout-discovery-endpoint-verification",
		"oidcc-rp-initiated-logout",
		"oidcc-rp-initiated-logout-bad-post-logout-redirect-uri",
		"oidcc-rp-initiated-logout-modified-id-token-hint",
		"oidcc-rp-initiated-logout-no-id-token-hint",
		"oidcc-rp-initiated-logout-no-params",
		"oidcc-rp-initiated-logout-no-post-logout-redirect-uri",
		"oidcc-rp-initiated-logout-no-state",
		"oidcc-rp-initiated-logout-only-state",
		"oidcc-rp-initiated-logout-query-added-to-post-logout-redirect-uri",
		"oidcc-rp-initiated-logout-bad-id-token-hint",
	}, nil}.run(t, c, map[string]func(t *testing.T){
		"oidcc-rp-initiated-logout-discovery-endpoint-verification": func(t *testing.T) {
			verifyDiscovery(t, c)
			equal(t, "end_session_endpoint", discoveryOf(t, c)["end_session_endpoint"], any(c.base()+logoutPath))
		},
		"oidcc-rp-initiated-logout":                                         s.redirects(nil, goodbye+"?state=s-1"),
		"oidcc-rp-initiated-logout-no-state":                                s.redirects(url.Values{"state": nil}, goodbye),
		"oidcc-rp-initiated-logout-no-post-logout-redirect-uri":             s.redirects(url.Values{"post_logout_redirect_uri": nil}, signedOutPage),
		"oidcc-rp-initiated-logout-bad-post-logout-redirect-uri":            s.redirects(url.Values{"post_logout_redirect_uri": {"https://app.example.com/other"}}, signedOutPage),
		"oidcc-rp-initiated-logout-query-added-to-post-logout-redirect-uri": s.redirects(url.Values{"post_logout_redirect_uri": {goodbye + "?foo=bar"}}, signedOutPage),
		"oidcc-rp-initiated-logout-modified-id-token-hint": s.asks(func(v url.Values) {
			v.Set("id_token_hint", unsecured(t, claimsOf(t, s.idToken)))
		}),
		"oidcc-rp-initiated-logout-bad-id-token-hint": s.asks(func(v url.Values) {
			v.Set("id_token_hint", newSigner(t, "stranger").assert(t, c.base(), s.first.id, object{"sub": s.userID}))
		}),
		"oidcc-rp-initiated-logout-no-id-token-hint": s.asks(func(v url.Values) { v.Del("id_token_hint") }),
		"oidcc-rp-initiated-logout-no-params":        s.asks(func(v url.Values) { clear(v) }),
		"oidcc-rp-initiated-logout-only-state": s.asks(func(v url.Values) {
			clear(v)
			v.Set("state", "s-1")
		}),
	})
}

// backchannelLogoutOP is the plan for the profile Back-Channel Logout OP.
func backchannelLogoutOP(t *testing.T, w *world, c *client) {
	tokens := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { tokens <- r.FormValue("logout_token") }))
	t.Cleanup(server.Close)
	s := newLogoutSuite(t, w, c, object{"backchannel_logout_uri": server.URL + "/backchannel_logout", "backchannel_logout_session_required": true})
	plan{"oidcc-backchannel-rp-initiated-logout-certification-test-plan", []string{
		"oidcc-backchannel-logout-discovery-endpoint-verification",
		"oidcc-backchannel-rp-initiated-logout",
	}, nil}.run(t, c, map[string]func(t *testing.T){
		"oidcc-backchannel-logout-discovery-endpoint-verification": func(t *testing.T) {
			verifyDiscovery(t, c)
			d := discoveryOf(t, c)
			equal(t, "discovery", []any{d["backchannel_logout_supported"], d["backchannel_logout_session_supported"], d["end_session_endpoint"]}, []any{true, true, c.base() + logoutPath})
		},
		"oidcc-backchannel-rp-initiated-logout": func(t *testing.T) {
			before := s.enter(t)
			a, at := s.leave(t, s.params(nil))
			equal(t, "out", []any{a.status, at.String()}, []any{302, goodbye + "?state=s-1"})
			select {
			case token := <-tokens:
				claims := logoutToken(t, c, s.first.id, token)
				equal(t, "logout token", []any{claims["sid"], claims["sub"]}, []any{before["sid"], before["sub"]})
			case <-time.After(30 * time.Second):
				t.Fatal("no logout token came")
			}
			equal(t, "signed in", s.in(t), false)
		},
	})
}

// logoutToken verifies a logout token (OIDC Back-Channel Logout §2.4), and returns its claims.
func logoutToken(t *testing.T, c *client, clientID, token string) object {
	t.Helper()
	verifySignature(t, c, token)
	claims := claimsOf(t, token)
	events, _ := claims["events"].(map[string]any)
	event := events["http://schemas.openid.net/event/backchannel-logout"]
	equal(t, "logout token", []any{headerOf(t, token)["typ"], claims["iss"], claims["aud"], event, claims["nonce"], claims["jti"] != nil, claims["exp"].(float64) > claims["iat"].(float64)},
		[]any{"logout+jwt", c.base(), clientID, object{}, nil, true, true})
	return claims
}

// frontchannelLogoutOP is the plan for the profile Front-Channel Logout OP.
func frontchannelLogoutOP(t *testing.T, w *world, c *client) {
	s := newLogoutSuite(t, w, c, object{"frontchannel_logout_uri": "https://app.example.com/frontchannel_logout", "frontchannel_logout_session_required": true})
	plan{"oidcc-frontchannel-rp-initiated-logout-certification-test-plan", []string{
		"oidcc-frontchannel-logout-discovery-endpoint-verification",
		"oidcc-frontchannel-rp-initiated-logout",
	}, nil}.run(t, c, map[string]func(t *testing.T){
		"oidcc-frontchannel-logout-discovery-endpoint-verification": func(t *testing.T) {
			verifyDiscovery(t, c)
			d := discoveryOf(t, c)
			equal(t, "discovery", []any{d["frontchannel_logout_supported"], d["frontchannel_logout_session_supported"], d["end_session_endpoint"]}, []any{true, true, c.base() + logoutPath})
		},
		"oidcc-frontchannel-rp-initiated-logout": func(t *testing.T) {
			before := s.enter(t)
			a, _ := s.leave(t, s.params(nil))
			equal(t, "status", a.status, 200)
			frames, next := framesOf(a.text)
			equal(t, "frames", frames, []string{"https://app.example.com/frontchannel_logout?" + url.Values{"iss": {c.base()}, "sid": {before["sid"].(string)}}.Encode()})
			equal(t, "next", next, goodbye+"?state=s-1")
			equal(t, "signed in", s.in(t), false)
		},
	})
}

// frontchannelLogout is what the plan does not test: which applications are loaded, by which pages, and
// what the policy of the page permits.
func frontchannelLogout(t *testing.T, w *world, c *client) {
	w.ahead.Store(0)
	member(t, c, "ann@example.com")
	const at = "https://app.example.com:8443"
	p := newParty(t, c, object{"redirect_uris": []any{callback, at + "/cb"}, "post_logout_redirect_uris": []any{goodbye}, "frontchannel_logout_uri": at + "/out?x=1&y=%22"})
	second := newParty(t, c, object{"name": "Second", "redirect_uris": []any{callback, "http://127.0.0.1:9000/cb"}, "frontchannel_logout_uri": "http://127.0.0.1:9000/out"})
	twin := newParty(t, c, object{"name": "Twin", "frontchannel_logout_uri": "https://app.example.com/out"})
	silent := newParty(t, c, object{"name": "Silent"})
	absent := newParty(t, c, object{"name": "Absent", "frontchannel_logout_uri": "https://app.example.com/absent"})
	enter := func(parties ...*relyingParty) (idToken string, query string) {
		t.Helper()
		session := signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
		absent.session = session
		for _, party := range parties {
			party.session = session
			idToken = party.exchange(t, party.code(t, nil), nil).body["id_token"].(string)
		}
		return idToken, url.Values{"iss": {c.base()}, "sid": {claimsOf(t, idToken)["sid"].(string)}}.Encode()
	}
	all := func(query string) []string {
		byClient := map[string]string{p.id: at + "/out?x=1&y=%22&" + query, second.id: "http://127.0.0.1:9000/out?" + query, twin.id: "https://app.example.com/out?" + query}
		var frames []string
		for _, id := range slices.Sorted(slices.Values([]string{p.id, second.id, twin.id})) {
			frames = append(frames, byClient[id])
		}
		return frames
	}
	allowed := func(what string, header http.Header, origins ...string) {
		t.Helper()
		policy := header.Get("Content-Security-Policy")
		for _, directive := range strings.Split(policy, "; ") {
			if rest, ok := strings.CutPrefix(directive, "frame-src "); ok {
				got := strings.Split(rest, " ")
				slices.Sort(got)
				slices.Sort(origins)
				equal(t, what, got, origins)
			}
		}
		if !strings.HasPrefix(policy, "default-src 'none'; script-src 'sha256-") || !strings.Contains(policy, "; frame-src ") || !strings.Contains(policy, "frame-ancestors 'none'") || header.Get("Referrer-Policy") != "no-referrer" || header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v", what, header)
		}
	}

	idToken, query := enter(twin, silent, second, p)
	a, _ := p.browse(t, logoutPath+"?"+url.Values{"id_token_hint": {idToken}, "post_logout_redirect_uri": {goodbye}, "state": {`"><script>`}}.Encode())
	frames, next := framesOf(a.text)
	equal(t, "at the request of an application", []any{a.status, frames, next}, []any{200, all(query), goodbye + "?" + url.Values{"state": {`"><script>`}}.Encode()})
	allowed("policy", a.header, at, "http://127.0.0.1:9000", "https://app.example.com")
	if strings.Contains(a.text, `"><script>`) {
		t.Error("the state is not escaped")
	}
	equal(t, "the session", c.with(p.session).do(t, "GET", mePath+"/profile", nil).status, 401)
	// There are no frames without a session.
	a, to := p.browse(t, logoutPath+"?"+url.Values{"id_token_hint": {idToken}, "post_logout_redirect_uri": {goodbye}}.Encode())
	equal(t, "again", []any{a.status, to.String()}, []any{302, goodbye})

	// The page of the product signs out of applications, too, and then goes on.
	_, query = enter(twin, second, p)
	asked := logoutPath + "?" + url.Values{"client_id": {p.id}, "post_logout_redirect_uri": {goodbye}}.Encode()
	said := c.visit(t, "POST", "/auth/sign-out", asBrowser(p.session), url.Values{"next": {asked}})
	frames, next = framesOf(said.html)
	equal(t, "by the page", []any{said.status, frames, next}, []any{200, all(query), asked})
	allowed("policy of the page", said.header, at, "http://127.0.0.1:9000", "https://app.example.com")
	_, to = p.browse(t, next)
	equal(t, "at last", to.String(), goodbye)

	// The operation for other pages names the addresses.
	_, query = enter(second)
	begun := c.with(second.session).want(t, 200, "", "POST", authPath+"/federation/logout", object{}).data()
	equal(t, "operation", begun["frontchannel_logout_uris"], any([]any{"http://127.0.0.1:9000/out?" + query}))

	// The address has the origin of a redirect URI, and nothing that could end a directive.
	for what, uri := range map[string]string{
		"another host": "https://other.example.com/out", "another port": "https://app.example.com:444/out", "another scheme": "http://app.example.com/out", "a suffix": "https://app.example.com.evil.test/out",
		"user information": "https://ann@app.example.com/out", "a fragment": "https://app.example.com/out#x", "a directive": "https://app.example.com;script-src/out", "relative": "/out", "a script": "javascript:alert(1)", "long": "https://app.example.com/" + long(2048),
		"a wildcard": "https://*/out", "upper case": "https://APP.example.com/out", "no host": "https:///out", "a space": "https://app.example.com/o ut",
	} {
		equal(t, what, fields(c.want(t, 400, "validation_failed", "POST", appsPath, object{"name": "Bad", "type": "server", "redirect_uris": []any{callback}, "frontchannel_logout_uri": uri})), []string{"frontchannel_logout_uri"})
	}
	app := appsPath + "/" + twin.applicationID(t, c)
	equal(t, "a redirect URI that it needs", fields(c.want(t, 400, "validation_failed", "PATCH", app, object{"redirect_uris": []any{"https://new.example.com/cb"}})), []string{"frontchannel_logout_uri"})
	d := c.want(t, 200, "", "PATCH", app, object{"frontchannel_logout_uri": nil, "frontchannel_logout_session_required": nil}).data()
	equal(t, "removed", []any{d["frontchannel_logout_uri"], d["frontchannel_logout_session_required"]}, []any{nil, false})
}
