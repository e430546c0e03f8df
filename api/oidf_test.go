package api_test

import (
	"encoding/base64"
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"
)

// plan is a test plan of the conformance suite of the OpenID Foundation.
type plan struct {
	name    string
	modules []string // in the order of the plan
	// left has the modules that are not tested, with the reason.
	left map[string]leftOut
}

// leftOut is the reason for which a module is not tested.
type leftOut struct {
	why string
	// offered reports whether discovery offers the option that the module is for. It must not. nil:
	// the module is for another variant of the plan than the one that is tested.
	offered func(discovery object) bool
}

// run runs the tests of a plan, which have the names of its modules. It fails if a module has no
// test, if a test has no module, and if discovery offers an option whose modules are left out.
func (p plan) run(t *testing.T, c *client, tests map[string]func(t *testing.T)) {
	t.Helper()
	discovery := discoveryOf(t, c)
	for name := range tests {
		if !slices.Contains(p.modules, name) {
			t.Errorf("%s has no module %s", p.name, name)
		}
	}
	for name := range p.left {
		if !slices.Contains(p.modules, name) {
			t.Errorf("%s has no module %s to leave out", p.name, name)
		}
	}
	for _, name := range p.modules {
		test, without := tests[name], p.left[name]
		switch {
		case test == nil && without.why == "":
			t.Errorf("the module %s of %s has no test", name, p.name)
		case test != nil && without.why != "":
			t.Errorf("the module %s of %s has a test, and is left out", name, p.name)
		case test == nil && without.offered != nil && without.offered(discovery):
			t.Errorf("the module %s of %s has no test, because %s, but discovery offers it", name, p.name, without.why)
		case test != nil:
			t.Run(name, test)
		}
	}
}

func discoveryOf(t *testing.T, c *client) object {
	t.Helper()
	return c.with("").want(t, 200, "", "GET", "/.well-known/openid-configuration", nil).body
}

// offers returns a function that reports whether a list of discovery has a value.
func offers(member, value string) func(object) bool {
	return func(discovery object) bool {
		list, _ := discovery[member].([]any)
		return slices.Contains(list, any(value))
	}
}

// has returns a function that reports whether discovery has a member that is not false.
func has(member string) func(object) bool {
	return func(discovery object) bool { return discovery[member] != nil && discovery[member] != false }
}

// opSuite tests a plan with a static client, as the suite does: it authenticates by
// client_secret_basic, and sends neither PKCE nor anything else that OpenID Connect does not demand.
type opSuite struct {
	w      *world
	c      *client
	mode   string // response_mode; empty: none is sent
	userID string
	// first and second are clients; the browser of first is signed in.
	first, second *relyingParty
}

// allScopes are the scopes of OpenID Connect.
const allScopes = "openid profile email address phone"

func newSuite(t *testing.T, w *world, c *client, mode string, form object) *opSuite {
	t.Helper()
	w.ahead.Store(0) // both clocks count here
	s := &opSuite{w: w, c: c, mode: mode, userID: member(t, c, "ann@example.com")}
	c.want(t, 200, "", "PATCH", "/api/v1/users/"+s.userID, object{"attributes": object{
		"preferred_username": "ann", "website": "https://ann.example.com", "zoneinfo": "Europe/Zurich", "birthdate": "1990-02-03",
		"phone_number": "+41441234567", "address": object{"locality": "Bern", "country": "CH"},
	}})
	setup := object{"require_pkce": false, "id_token_signed_response_alg": "RS256", "allowed_scopes": []any{"openid", "profile", "email", "address", "phone", "offline_access"}}
	for name, value := range form {
		setup[name] = value
	}
	s.first = newParty(t, c, setup)
	setup["name"] = "Second"
	s.second = newParty(t, c, setup)
	s.signIn(t)
	return s
}

// signIn begins a session in the browser.
func (s *opSuite) signIn(t *testing.T) {
	t.Helper()
	s.first.session = signIn(t, s.c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	s.second.session = s.first.session
}

// signedOut returns a client whose browser has no session.
func (s *opSuite) signedOut() *relyingParty {
	return &relyingParty{client: s.first.client, id: s.first.id, secret: s.first.secret}
}

// plain removes PKCE from a request.
var plain = url.Values{"code_challenge": nil, "code_challenge_method": nil}

// query returns the parameters of an authorization request.
func (s *opSuite) query(p *relyingParty, changes url.Values) url.Values {
	v := joined(p.request(plain), changes)
	if s.mode != "" && !v.Has("response_mode") {
		v.Set("response_mode", s.mode)
	}
	for name, values := range v {
		if len(values) == 0 {
			delete(v, name)
		}
	}
	return v
}

// visit sends an authorization request. The result has the parameters of the response to the client,
// or of the redirect to a page of the server.
func (s *opSuite) visit(t *testing.T, p *relyingParty, changes url.Values) (a answer, to *url.URL, response url.Values) {
	t.Helper()
	return s.open(t, p, "/oauth2/authorize?"+s.query(p, changes).Encode())
}

// open opens a page with the browser of a client.
func (s *opSuite) open(t *testing.T, p *relyingParty, target string) (a answer, to *url.URL, response url.Values) {
	t.Helper()
	a, to = p.browse(t, target)
	response = to.Query()
	if a.status == 200 { // a form that the browser posts
		response = url.Values{}
		for name, value := range hiddenFields(a.text) {
			response.Set(name, value)
		}
		if !strings.Contains(a.text, `action="`+callback+`"`) {
			t.Errorf("the form leads elsewhere: %s", a.text)
		}
	}
	if inForm := a.status == 200; response.Has("iss") && inForm != (s.mode == "form_post") {
		t.Errorf("response mode %q: %d", s.mode, a.status)
	}
	return a, to, response
}

// code returns the code in a response.
func (s *opSuite) code(t *testing.T, response url.Values) string {
	t.Helper()
	if response.Get("code") == "" || response.Get("state") != "a b&c=" || response.Get("iss") != s.c.base() {
		t.Fatalf("response: %v", response)
	}
	return response.Get("code")
}

// tokensOf redeems a code by client_secret_basic.
func (s *opSuite) redeem(t *testing.T, p *relyingParty, code string) answer {
	t.Helper()
	return p.form(t, basic(p.id, p.secret), url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {callback}})
}

// flow is a sign-in whose user is signed in already. It returns the response of the token endpoint and
// the claims of the ID token, which were verified as OIDC Core §3.1.3.7 demands.
func (s *opSuite) flow(t *testing.T, changes url.Values) (tokens, claims object) {
	t.Helper()
	_, _, response := s.visit(t, s.first, changes)
	return s.finish(t, s.first, response)
}

func (s *opSuite) finish(t *testing.T, p *relyingParty, response url.Values) (tokens, claims object) {
	t.Helper()
	a := s.redeem(t, p, s.code(t, response))
	if a.status != 200 || a.header.Get("Cache-Control") != "no-store" || a.header.Get("Pragma") != "no-cache" || a.body["token_type"] != "Bearer" || a.body["expires_in"] == nil {
		t.Fatalf("tokens: %d %s", a.status, a.text)
	}
	return a.body, verifiedIDToken(t, s.c, p.id, a.body["id_token"].(string))
}

// verifiedIDToken verifies an ID token by the published keys, and returns its claims.
func verifiedIDToken(t *testing.T, c *client, clientID, token string) object {
	t.Helper()
	verifySignature(t, c, token)
	claims := claimsOf(t, token)
	equal(t, "ID token", []any{claims["iss"], claims["aud"], claims["sub"] != nil, claims["exp"].(float64) > claims["iat"].(float64), claims["auth_time"] != nil}, []any{c.base(), clientID, true, true, true})
	return claims
}

// verifySignature verifies a token by the published keys.
func verifySignature(t *testing.T, c *client, token string) {
	t.Helper()
	keys, err := jwk.Parse([]byte(c.with("").want(t, 200, "", "GET", "/.well-known/jwks.json", nil).text))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := jws.Verify([]byte(token), jws.WithKeySet(keys)); err != nil {
		t.Fatalf("signature: %v", err)
	}
}

// userInfo reads the claims of the UserInfo endpoint.
func (s *opSuite) userInfo(t *testing.T, tokens object) object {
	t.Helper()
	return s.c.with(tokens["access_token"].(string)).want(t, 200, "", "GET", "/oauth2/userinfo", nil).body
}

// succeeds returns a test that a request with some parameters leads to tokens.
func (s *opSuite) succeeds(changes url.Values) func(t *testing.T) {
	return func(t *testing.T) {
		_, claims := s.flow(t, changes)
		equal(t, "sub", claims["sub"], any(s.userID))
	}
}

// showsSignIn returns a test that a request with some parameters leads a browser without a session to
// the sign-in page, and from there to tokens.
func (s *opSuite) showsSignIn(changes url.Values) func(t *testing.T) {
	return func(t *testing.T) {
		p := s.signedOut()
		_, to, _ := s.visit(t, p, changes)
		equal(t, "page", to.Path, "/auth/sign-in")
		equal(t, "shown", s.c.visit(t, "GET", to.RequestURI(), http.Header{}, nil).status, 200)
		p.session = signIn(t, s.c, "ann@example.com", secret, "complete").data()["session_token"].(string)
		_, _, response := s.open(t, p, to.Query().Get("next"))
		s.finish(t, p, response)
	}
}

// scope returns a test that a scope leads to claims at the UserInfo endpoint.
func (s *opSuite) scope(scope string, want object) func(t *testing.T) {
	return func(t *testing.T) {
		tokens, _ := s.flow(t, url.Values{"scope": {scope}})
		got := s.userInfo(t, tokens)
		equal(t, "sub", got["sub"], any(s.userID))
		for name, value := range want {
			equal(t, name, got[name], value)
		}
	}
}

// refusedPage returns a test that a request leads to a page of the server and not to a client.
func (s *opSuite) refusedPage(changes url.Values) func(t *testing.T) {
	return func(t *testing.T) {
		a, to, _ := s.visit(t, s.first, changes)
		equal(t, "refused", []any{a.status, to.String(), strings.HasPrefix(a.header.Get("Content-Type"), "text/html")}, []any{400, "", true})
	}
}

// errorOf returns a test that a request leads back to the client with an error.
func (s *opSuite) errorOf(code string, changes url.Values) func(t *testing.T) {
	return func(t *testing.T) {
		_, _, response := s.visit(t, s.first, changes)
		equal(t, "refused", []any{response.Get("error"), response.Get("state"), response.Get("iss"), response.Has("code")}, []any{code, "a b&c=", s.c.base(), false})
	}
}

// unsecured returns a JWT without a signature (RFC 7519 §6).
func unsecured(t *testing.T, claims object) string {
	t.Helper()
	parts := ""
	for _, part := range []object{{"alg": "none"}, claims} {
		text, err := json.Marshal(part)
		if err != nil {
			t.Fatal(err)
		}
		parts += base64.RawURLEncoding.EncodeToString(text) + "."
	}
	return parts
}

var framePattern, nextPattern = regexp.MustCompile(`<iframe src="([^"]*)"`), regexp.MustCompile(`<a id="next" href="([^"]*)"`)

// framesOf returns the addresses of the frames of a page, and the one to which it goes on.
func framesOf(page string) (frames []string, next string) {
	for _, m := range framePattern.FindAllStringSubmatch(page, -1) {
		frames = append(frames, html.UnescapeString(m[1]))
	}
	if m := nextPattern.FindStringSubmatch(page); m != nil {
		next = html.UnescapeString(m[1])
	}
	return frames, next
}
