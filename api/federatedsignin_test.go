package api_test

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"
)

var providerKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

// openID is an OpenID provider whose user does what the test says.
type openID struct {
	*httptest.Server
	mu    sync.Mutex
	codes map[string]string // the ID tokens
	more  object            // members of the metadata
	now   func() time.Time
}

func newOpenID(t testing.TB, w *world, more ...object) *openID {
	t.Helper()
	p := &openID{codes: map[string]string{}, more: object{}, now: w.now}
	for _, m := range more {
		maps.Copy(p.more, m)
	}
	answer := func(w http.ResponseWriter, body any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(body)
	}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/.well-known/openid-configuration":
			answer(w, with(object{
				"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
				"response_types_supported": []any{"code"}, "id_token_signing_alg_values_supported": []any{"RS256"}, "authorization_response_iss_parameter_supported": true,
			}, p.more))
		case "/keys":
			key, err := jwk.Import(providerKey().Public())
			if err == nil {
				err = key.Set("kid", "k")
			}
			if err != nil {
				t.Error(err)
			}
			answer(w, object{"keys": []any{key}})
		case "/token":
			p.mu.Lock()
			token := p.codes[r.FormValue("code")]
			delete(p.codes, r.FormValue("code"))
			p.mu.Unlock()
			if token == "" {
				w.WriteHeader(http.StatusBadRequest)
				answer(w, object{"error": "invalid_grant"})
				return
			}
			answer(w, object{"access_token": "opaque", "token_type": "Bearer", "id_token": token})
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(p.Close)
	return p
}

// sign returns a token of the provider.
func (p *openID) sign(t testing.TB, typ string, claims object) string {
	t.Helper()
	header := jws.NewHeaders()
	_, _ = header.Set("kid", "k"), header.Set("typ", typ)
	body, _ := json.Marshal(claims)
	token, err := jws.Sign(body, jws.WithKey(jwa.RS256(), providerKey(), jws.WithProtectedHeaders(header)))
	if err != nil {
		t.Error(err)
	}
	return string(token)
}

// signIn is the answer of the provider to a request, with claims of the user.
func (p *openID) signIn(t testing.TB, request string, claims object) url.Values {
	t.Helper()
	u, err := url.Parse(request)
	if err != nil || !strings.HasPrefix(request, p.URL+"/authorize?") {
		t.Fatalf("the request is %q, %v", request, err)
	}
	q := u.Query()
	if q.Get("code_challenge_method") != "S256" || q.Get("nonce") == "" || q.Get("response_type") != "code" {
		t.Errorf("the request is %v", q)
	}
	all := object{"iss": p.URL, "aud": q.Get("client_id"), "nonce": q.Get("nonce"), "iat": p.now().Unix(), "exp": p.now().Add(time.Minute).Unix()}
	maps.Copy(all, claims)
	code, token := rand.Text(), p.sign(t, "JWT", all)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.codes[code] = token
	return url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {p.URL}}
}

// begun is a sign-in whose browser is at the provider.
type begun struct {
	request string
	cookies []string
	secret  string // that of the cookie
}

// begunBy reads the redirect to the provider.
func begunBy(t testing.TB, header http.Header, to string) begun {
	t.Helper()
	b := begun{request: to}
	for _, line := range header.Values("Set-Cookie") {
		pair, _, _ := strings.Cut(line, ";")
		if name, value, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "__Host-fed-") {
			if !strings.Contains(line, "; HttpOnly; Secure; SameSite=Lax") {
				t.Errorf("cookie: %s", line)
			}
			b.secret = strings.TrimPrefix(value, "link.")
			b.cookies = append(b.cookies, pair)
		}
	}
	if b.secret == "" {
		t.Fatalf("no cookie in %v", header)
	}
	return b
}

// start starts a sign-in at a connection.
func (c *client) start(t testing.TB, slug, query string) begun {
	t.Helper()
	a := c.with("").want(t, 303, "", "GET", authPath+"/federation/"+slug+"/start"+query, nil)
	return begunBy(t, a.header, a.header.Get("Location"))
}

// failure is the page with the error of a sign-in, to which a callback redirects; empty: it does not.
func (c *client) failure(t testing.TB, page shown) (html string) {
	t.Helper()
	to := page.header.Get("Location")
	if page.status != 303 || !strings.Contains(to, "?failed=") {
		return ""
	}
	return c.visit(t, "GET", to, nil, nil).html
}

// complete is the request that completes a sign-in.
func (b begun) complete(slug string, answer url.Values) object {
	parameters := object{}
	for name, values := range answer {
		parameters[name] = values[0]
	}
	return object{"slug": slug, "secret": b.secret, "parameters": parameters}
}

// staff connects a tenant to an OpenID provider.
func staff(t testing.TB, c *client, p *openID, more object) (path string, id any) {
	t.Helper()
	path, d := connect(t, c, with(object{"kind": "oidc", "slug": "staff", "name": "Staff", "issuer": p.URL, "client_id": "id", "client_secret": "cs_kept"}, more))
	return path, d["id"]
}

// federatedSignIn signs in at a provider: in a browser and without one, again, and not twice with
// one answer.
func federatedSignIn(t *testing.T, w *world, c *client) {
	p := newOpenID(t, w)
	group := c.want(t, 201, "", "POST", "/api/v1/groups", object{"name": "Engineers", "slug": "engineers"}).data()["id"]
	_, id := staff(t, c, p, object{"domains": []any{"example.org"}, "attribute_mapping": object{"groups": "$.roles"}, "group_mapping": []any{object{"value": "engineering", "group_id": group}}})
	anyone := c.with("")
	equal(t, "choices", anyone.want(t, 200, "", "GET", authPath+"/policy", nil).data()["connections"], any([]any{map[string]any{"slug": "staff", "kind": "oidc", "name": "Staff"}}))
	identify := func(email string) any {
		return anyone.want(t, 200, "", "POST", authPath+"/identify", object{"email": email}).data()["connection"]
	}
	equal(t, "home realm", []any{identify("x@EXAMPLE.org"), identify("x@example.com"), identify("x")}, []any{"staff", nil, nil})
	if page := c.visit(t, "GET", "/auth/sign-in?next=/account/sessions?x=1", nil, nil); !strings.Contains(page.html, `/federation/staff/start?next=%2Faccount%2Fsessions%3Fx%3D1`) {
		t.Errorf("the page has no button:\n%s", page.html)
	}
	found := c.visit(t, "POST", "/auth/organization", nil, url.Values{"email": {"x@example.org"}, "next": {"/account/sessions?x=1"}})
	equal(t, "organisation", found.header.Get("Location"), "/api/v1/auth/federation/staff/start?next=%2Faccount%2Fsessions%3Fx%3D1&login_hint=x%40example.org")

	// In a browser.
	email := "fed-" + strings.ToLower(rand.Text()[:8]) + "@example.org"
	claims := object{"sub": "1", "email": email, "email_verified": true, "name": "Ann", "roles": []any{"engineering"}}
	b := c.start(t, "staff", "?next=/account/sessions?x=1&login_hint=x@example.org")
	equal(t, "hint", strings.Contains(b.request, "login_hint=x%40example.org"), true)
	answer := p.signIn(t, b.request, claims)
	callback := "/federation/staff/callback?" + answer.Encode()
	if page := c.visit(t, "GET", callback, nil, nil); page.status != 303 || cookieOf(page) != "" || page.header.Get("Location") != "/auth/sign-in?failed=federation_expired" {
		t.Errorf("another browser: %d %v", page.status, page.header)
	}
	equal(t, "repeated parameter", c.visit(t, "GET", callback+"&code=x", http.Header{"Cookie": b.cookies}, nil).status, 400)
	page := c.visit(t, "GET", callback, http.Header{"Cookie": b.cookies}, nil)
	if page.status != 303 || page.header.Get("Location") != "/account/sessions?x=1" || cookieOf(page) == "" {
		t.Fatalf("callback: %d %v %s", page.status, page.header, page.html)
	}
	user := c.with(cookieOf(page))
	me := user.want(t, 200, "", "GET", mePath+"/profile", nil).data()
	equal(t, "user", []any{me["email"], me["email_verified"], me["name"]}, []any{email, true, "Ann"})
	equal(t, "amr", user.want(t, 200, "", "GET", authPath+"/session", nil).data()["amr"], any([]any{"fed"}))
	identities := user.want(t, 200, "", "GET", mePath+"/identities", nil).list()
	equal(t, "identity", []any{len(identities), identities[0].(map[string]any)["connection_id"], identities[0].(map[string]any)["subject"]}, []any{1, id, "1"})
	member := "/api/v1/groups/" + group.(string) + "/members"
	equal(t, "members", len(c.want(t, 200, "", "GET", member, nil).list()), 1)
	page = c.visit(t, "GET", callback, http.Header{"Cookie": b.cookies}, nil)
	if to := page.header.Get("Location"); page.status != 303 || cookieOf(page) != "" || to != "/auth/sign-in?failed=federation_expired" {
		t.Errorf("the answer again: %d %v", page.status, page.header)
	} else if shown := c.visit(t, "GET", to, nil, nil); shown.status != 200 || !strings.Contains(shown.html, "This sign-in has expired") {
		t.Errorf("the answer again: %d %s", shown.status, shown.html)
	}

	// A sign-in that fails keeps the destination, also if the page is loaded again.
	b = c.start(t, "staff", "?next=/account/sessions?x=1")
	page = c.visit(t, "GET", "/federation/staff/callback?"+url.Values{"error": {"access_denied"}, "state": {stateOf(b)}, "iss": {p.URL}}.Encode(), http.Header{"Cookie": b.cookies}, nil)
	at := page.header.Get("Location")
	equal(t, "denied", []any{page.status, at}, []any{303, "/auth/sign-in?failed=federation_failed&reason=access_denied&next=%2Faccount%2Fsessions%3Fx%3D1"})
	for range 2 {
		shown := c.visit(t, "GET", at, nil, nil)
		equal(t, "denied", []any{shown.status, strings.Contains(shown.html, "cancelled"), strings.Contains(shown.html, `/federation/staff/start?next=%2Faccount%2Fsessions%3Fx%3D1`)}, []any{200, true, true})
	}
	equal(t, "an unknown error", strings.Contains(c.visit(t, "GET", "/auth/sign-in?failed=%3Cb%3E", nil, nil).html, `role="alert" hidden></p>`), true)

	// Without a browser, by another address, and without the group.
	b = c.start(t, "staff", "?flow=flw_x")
	claims["email"], claims["roles"] = "other@example.org", []any{}
	answer = p.signIn(t, b.request, claims)
	d := anyone.want(t, 200, "", "POST", authPath+"/federation/complete", b.complete("staff", answer)).data()
	equal(t, "again", []any{d["status"], d["user"].(map[string]any)["id"], d["redirect_to"]}, []any{"complete", me["id"], "/oauth2/authorize/resume?flow=flw_x"})
	equal(t, "members", len(c.want(t, 200, "", "GET", member, nil).list()), 0)
	anyone.want(t, 400, "ceremony_invalid", "POST", authPath+"/federation/complete", b.complete("staff", answer))

	// A form that the provider posts.
	b = c.start(t, "staff", "")
	form := p.signIn(t, b.request, claims)
	page = c.visit(t, "POST", "/federation/staff/callback", http.Header{"Sec-Fetch-Site": {"cross-site"}, "Origin": {p.URL}}, form)
	equal(t, "form", []any{page.status, page.header.Get("Location")}, []any{303, "/federation/staff/callback?" + form.Encode()})
	equal(t, "a large form", c.visit(t, "POST", "/federation/staff/callback", nil, url.Values{"code": {long(9000)}}).status, 413)
}

// federatedLinking links an identity with an account, by a proof of the account and from its session.
func federatedLinking(t *testing.T, w *world, c *client) {
	p := newOpenID(t, w)
	path, _ := staff(t, c, p, object{"link_policy": "always_prompt"})
	var email, userID string
	var claims object
	somebody := func(subject string) {
		t.Helper()
		email = "link-" + strings.ToLower(rand.Text()[:8]) + "@example.org"
		userID, claims = member(t, c, email), object{"sub": subject, "email": email, "email_verified": true}
	}
	somebody("1")
	anyone := c.with("")
	begin := func() (token any) {
		t.Helper()
		b := c.start(t, "staff", "")
		d := anyone.want(t, 200, "", "POST", authPath+"/federation/complete", b.complete("staff", p.signIn(t, b.request, claims))).data()
		equal(t, "status", []any{d["status"], d["session_token"]}, []any{"link_required", nil})
		return d["link_token"]
	}
	token := begin()
	anyone.want(t, 400, "validation_failed", "POST", authPath+"/federation/link", object{"link_token": token})
	anyone.want(t, 401, "invalid_credentials", "POST", authPath+"/federation/link", object{"link_token": token, "password": "wrong"})
	anyone.want(t, 400, "ceremony_invalid", "POST", authPath+"/federation/link", object{"link_token": token, "ceremony_id": "x", "credential": object{}})
	d := anyone.want(t, 200, "", "POST", authPath+"/federation/link", object{"link_token": token, "password": secret}).data()
	equal(t, "linked", []any{d["status"], d["user"].(map[string]any)["id"]}, []any{"complete", userID})
	anyone.want(t, 400, "ceremony_invalid", "POST", authPath+"/federation/link", object{"link_token": token, "password": secret})
	w.mailbox.take(t, email, "was linked")

	somebody("5")
	token = begin()
	ceremony := anyone.want(t, 200, "", "POST", authPath+"/webauthn/begin", object{}).data()["ceremony_id"]
	anyone.want(t, 400, "credential_invalid", "POST", authPath+"/federation/link", object{"link_token": token, "ceremony_id": ceremony, "credential": object{}})
	claims["sub"] = "6"
	another := begin()
	anyone.want(t, 200, "", "POST", authPath+"/federation/link", object{"link_token": token, "password": secret})
	anyone.want(t, 409, "identity_conflict", "POST", authPath+"/federation/link", object{"link_token": another, "password": secret})
	somebody("7")
	token = begin()
	for range 5 {
		anyone.want(t, 401, "invalid_credentials", "POST", authPath+"/federation/link", object{"link_token": token, "password": "wrong"})
	}
	anyone.want(t, 429, "rate_limited", "POST", authPath+"/federation/link", object{"link_token": token, "password": secret})
	somebody("8")
	token = begin()
	c.want(t, 200, "", "POST", "/api/v1/users/"+userID+"/disable", nil)
	anyone.want(t, 400, "ceremony_invalid", "POST", authPath+"/federation/link", object{"link_token": token, "password": secret})

	// On pages.
	somebody("2")
	b := c.start(t, "staff", "?next=/account/sessions?x=1")
	page := c.visit(t, "GET", "/federation/staff/callback?"+p.signIn(t, b.request, claims).Encode(), http.Header{"Cookie": b.cookies}, nil)
	at := page.header.Get("Location")
	if page.status != 303 || !strings.HasPrefix(at, "/auth/link-account?step=") {
		t.Fatalf("%d %v", page.status, page.header)
	}
	var cookies []string
	for _, line := range page.header.Values("Set-Cookie") {
		pair, _, _ := strings.Cut(line, ";")
		cookies = append(cookies, pair)
	}
	browser := http.Header{"Cookie": {strings.Join(cookies, "; ")}}
	equal(t, "page", c.visit(t, "GET", at, browser, nil).status, 200)
	step := strings.TrimPrefix(at, "/auth/link-account?step=")
	equal(t, "wrong password", c.visit(t, "POST", "/auth/link-account", browser, url.Values{"step": {step}, "password": {"wrong"}}).status, 401)
	page = c.visit(t, "POST", "/auth/link-account", browser, url.Values{"step": {step}, "password": {secret}})
	equal(t, "linked", []any{page.status, page.header.Get("Location"), cookieOf(page) != ""}, []any{303, "/account/sessions?x=1", true})

	// From the account.
	somebody("3")
	user := c.with(signIn(t, c, email, secret, "complete").data()["session_token"].(string))
	other := c.with(signIn(t, c, email, secret, "complete").data()["session_token"].(string))
	for _, target := range []string{mePath + "/identities/begin", mePath + "/identities/complete"} {
		user.want(t, 400, "validation_failed", "POST", target, object{})
		user.want(t, 400, "invalid_json", "POST", target, "{")
		equal(t, target, user.send(t, "POST", target, http.Header{"Idempotency-Key": {long(256)}, "Content-Type": {"application/json"}}, []byte("{}")).code(), "idempotency_key_invalid")
	}
	equal(t, "test", c.send(t, "POST", path+"/test", http.Header{"Idempotency-Key": {long(256)}}, nil).code(), "idempotency_key_invalid")
	for _, target := range []string{"complete", "link"} {
		anyone.want(t, 400, "invalid_json", "POST", authPath+"/federation/"+target, "{")
	}
	user.want(t, 404, "connection_not_found", "POST", mePath+"/identities/begin", object{"slug": "none"})
	link := func(by *client) (begun, object) {
		t.Helper()
		a := by.want(t, 200, "", "POST", mePath+"/identities/begin", object{"slug": "staff"})
		b := begunBy(t, a.header, a.data()["redirect_to"].(string))
		return b, b.complete("staff", p.signIn(t, b.request, object{"sub": "4", "email": "else@example.org"}))
	}
	_, form := link(user)
	anyone.want(t, 400, "ceremony_invalid", "POST", authPath+"/federation/complete", form) // not a sign-in
	other.want(t, 400, "ceremony_invalid", "POST", mePath+"/identities/complete", form)    // another session
	user.want(t, 204, "", "POST", mePath+"/identities/complete", form)
	user.want(t, 400, "ceremony_invalid", "POST", mePath+"/identities/complete", form)
	stranger := "other-" + strings.ToLower(rand.Text()[:8]) + "@example.org"
	member(t, c, stranger)
	bob := c.with(signIn(t, c, stranger, secret, "complete").data()["session_token"].(string))
	_, form = link(bob)
	bob.want(t, 409, "identity_conflict", "POST", mePath+"/identities/complete", form)
	b, form = link(bob)
	form["parameters"] = object{"error": "access_denied", "state": stateOf(b), "iss": p.URL}
	equal(t, "denied", bob.want(t, 400, "federation_failed", "POST", mePath+"/identities/complete", form).details()["reason"], "access_denied")
	_, form = link(bob)
	c.want(t, 200, "", "POST", path+"/disable", nil)
	bob.want(t, 403, "connection_disabled", "POST", mePath+"/identities/complete", form)
	bob.want(t, 403, "connection_disabled", "POST", mePath+"/identities/begin", object{"slug": "staff"})
	c.want(t, 403, "permission_denied", "POST", mePath+"/identities/begin", object{"slug": "staff"})
	c.want(t, 403, "permission_denied", "POST", mePath+"/identities/complete", form)
	w.later(11 * time.Minute) // too late for another way to sign in
	defer w.later(-11 * time.Minute)
	bob.want(t, 401, "insufficient_user_authentication", "POST", mePath+"/identities/begin", object{"slug": "staff"})
}

func stateOf(b begun) string {
	u, err := url.Parse(b.request)
	if err != nil {
		return ""
	}
	return u.Query().Get("state")
}

// federatedRefusals are sign-ins that end without a session.
func federatedRefusals(t *testing.T, w *world, c *client) {
	p := newOpenID(t, w)
	path, _ := staff(t, c, p, object{"jit_provisioning": false, "link_policy": "never"})
	email := "never-" + strings.ToLower(rand.Text()[:8]) + "@example.org"
	userID := member(t, c, email)
	anyone := c.with("")
	refused := func(status int, code string, change func(url.Values), claims object) answer {
		t.Helper()
		b := c.start(t, "staff", "?next=/account/sessions?x=1")
		params := p.signIn(t, b.request, with(object{"sub": "1", "email": email, "email_verified": true}, claims))
		if change != nil {
			change(params)
		}
		return anyone.want(t, status, code, "POST", authPath+"/federation/complete", b.complete("staff", params))
	}
	equal(t, "next", refused(409, "user_exists", nil, nil).details()["redirect_to"], "/account/sessions?x=1")
	refused(403, "permission_denied", nil, object{"email": "unknown@example.org"})
	reason := func(want string, change func(url.Values), claims object) {
		t.Helper()
		a := refused(400, "federation_failed", change, claims)
		equal(t, want, a.details()["reason"], want)
		if strings.Contains(a.text, "sent by the provider") {
			t.Errorf("the response has what the provider sent: %s", a.text)
		}
	}
	reason("access_denied", func(q url.Values) {
		q.Del("code")
		q.Set("error", "access_denied")
		q.Set("error_description", "sent by the provider")
	}, nil)
	reason("invalid_response", func(q url.Values) { q.Set("iss", "https://other.example") }, nil)
	reason("invalid_response", func(q url.Values) { q.Set("state", "of another") }, nil)
	reason("invalid_response", nil, object{"nonce": "sent by the provider"})
	reason("invalid_response", nil, object{"aud": "another"})
	anyone.want(t, 400, "validation_failed", "POST", authPath+"/federation/complete", object{"slug": "staff"})
	anyone.want(t, 400, "ceremony_invalid", "POST", authPath+"/federation/complete", object{"slug": "staff", "secret": "x", "parameters": object{}})

	// The answer of another provider, and a connection that is disabled or deleted meanwhile.
	q := newOpenID(t, w)
	_, d := connect(t, c, object{"kind": "oidc", "slug": "other", "name": "Other", "issuer": q.URL, "client_id": "id", "client_secret": "cs_kept"})
	b := c.start(t, "staff", "")
	anyone.want(t, 400, "ceremony_invalid", "POST", authPath+"/federation/complete", b.complete("other", p.signIn(t, b.request, nil)))
	c.want(t, 200, "", "PATCH", path, object{"jit_provisioning": true, "link_policy": "verified_email"})
	b = c.start(t, "staff", "")
	anyone.want(t, 200, "", "POST", authPath+"/federation/complete", b.complete("staff", p.signIn(t, b.request, object{"sub": "1", "email": email, "email_verified": true})))
	refused(409, "identity_conflict", nil, object{"sub": "2"})
	c.want(t, 200, "", "POST", "/api/v1/users/"+userID+"/disable", nil)
	refused(403, "user_disabled", nil, nil)
	reason("email_missing", nil, object{"sub": "3", "email": ""})
	b = c.start(t, "staff", "")
	c.want(t, 200, "", "POST", path+"/disable", nil)
	anyone.want(t, 403, "connection_disabled", "POST", authPath+"/federation/complete", b.complete("staff", p.signIn(t, b.request, nil)))
	for target, status := range map[string]int{"staff": 403, "none": 404, "other?next=https://evil.test": 400, "other?test=x": 400, "other?next=//evil.test": 400} {
		slug, query, _ := strings.Cut(target, "?")
		page := c.visit(t, "GET", authPath+"/federation/"+slug+"/start?"+query, nil, nil)
		equal(t, target, []any{page.status, strings.HasPrefix(page.header.Get("Content-Type"), "text/html")}, []any{status, true})
	}
	b = c.start(t, "other", "")
	c.want(t, 204, "", "DELETE", connectionsPath+"/"+d["id"].(string), nil)
	anyone.want(t, 400, "ceremony_invalid", "POST", authPath+"/federation/complete", b.complete("other", q.signIn(t, b.request, nil)))
}

// connectionTests test connections, once, without a session.
func connectionTests(t *testing.T, w *world, c *client) {
	p := newOpenID(t, w)
	path, _ := staff(t, c, p, object{"attribute_mapping": object{"groups": "$.roles"}})
	c.want(t, 200, "", "POST", path+"/disable", nil) // also before users can use it
	begin := func() (at string, b begun) {
		t.Helper()
		d := c.want(t, 200, "", "POST", path+"/test", nil).data()
		at = path + "/test/" + d["test_id"].(string)
		equal(t, "pending", c.want(t, 200, "", "GET", at, nil).data()["state"], "pending")
		_, query, _ := strings.Cut(d["test_url"].(string), "?")
		equal(t, "a preview of the link", c.visit(t, "HEAD", authPath+"/federation/staff/start?"+query, nil, nil).status, 200)
		b = c.start(t, "staff", "?"+query)
		equal(t, "begun again", c.visit(t, "GET", authPath+"/federation/staff/start?"+query, nil, nil).status, 400)
		return at, b
	}
	at, b := begin()
	users := len(c.want(t, 200, "", "GET", "/api/v1/users", nil).list())
	page := c.visit(t, "GET", "/federation/staff/callback?"+p.signIn(t, b.request, object{"sub": "<b>1", "email": "ann@example.org"}).Encode(), http.Header{"Cookie": b.cookies}, nil)
	if page.status != 200 || cookieOf(page) != "" || !strings.Contains(page.html, "The test succeeded") || strings.Contains(page.html, "<b>1") {
		t.Errorf("page: %d %s", page.status, page.html)
	}
	d := c.want(t, 200, "", "GET", at, nil).data()
	equal(t, "report", []any{d["state"], d["success"], d["claims_received"].(map[string]any)["sub"]}, []any{"completed", true, "<b>1"})
	var codes []any
	for _, warning := range d["warnings"].([]any) {
		codes = append(codes, warning.(map[string]any)["code"])
	}
	equal(t, "warnings", codes, []any{"missing", "unverified"})
	equal(t, "users", len(c.want(t, 200, "", "GET", "/api/v1/users", nil).list()), users)

	at, b = begin()
	c.with("").want(t, 200, "", "POST", authPath+"/federation/complete", b.complete("staff", url.Values{"error": {"server_error"}, "state": {stateOf(b)}, "iss": {p.URL}}))
	d = c.want(t, 200, "", "GET", at, nil).data()
	equal(t, "failed", []any{d["state"], d["success"], d["claims_received"], d["warnings"].([]any)[0].(map[string]any)["code"]}, []any{"completed", false, nil, "provider_error"})

	expired := c.want(t, 200, "", "POST", path+"/test", nil).data()["test_id"].(string)
	w.later(11 * time.Minute)
	equal(t, "expired", c.want(t, 200, "", "GET", path+"/test/"+expired, nil).data()["state"], "expired")
	w.later(-11 * time.Minute)
	c.want(t, 404, "test_not_found", "GET", path+"/test/tst_none", nil)
	c.want(t, 404, "connection_not_found", "POST", connectionsPath+"/fed_none/test", nil)
	saml, _ := connect(t, c, object{"kind": "saml", "slug": "partner", "name": "Partner", "idp_metadata_xml": samlMetadata("https://idp.example.com", newCertificate(t, time.Now().Add(1000*time.Hour)))})
	c.want(t, 404, "test_not_found", "GET", saml+"/test/"+expired, nil)
}
