package api_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jws"
)

// requestObject returns the parameters of a request as a JWT that a key of the application signs
// (RFC 9101); nil removes a claim.
func (p *relyingParty) requestObject(t testing.TB, by signer, changes object) string {
	t.Helper()
	claims := object{"aud": p.base(), "exp": time.Now().Add(time.Minute).Unix(), "iat": time.Now().Unix(), "sub": nil, "jti": nil}
	for name, values := range p.request(nil) {
		claims[name] = values[0]
	}
	maps.Copy(claims, changes)
	return by.assert(t, p.id, p.base(), claims)
}

// requestObjects has the rules of RFC 9101, at the authorization endpoint and in pushed requests.
func requestObjects(t *testing.T, w *world, c *client) {
	w.ahead.Store(0) // both clocks count here
	member(t, c, "ann@example.com")
	key, stranger := newSigner(t, "a"), newSigner(t, "a")
	scopes := []any{"openid", "email", "profile"}
	equal(t, "no keys", fields(c.want(t, 400, "validation_failed", "POST", appsPath, object{"name": "x", "type": "server", "require_signed_request_object": true})), []string{"jwks"})
	p := newParty(t, c, object{"jwks": keySet(key), "allowed_scopes": scopes})
	other := newParty(t, c, object{"name": "Other", "jwks": keySet(key), "allowed_scopes": scopes})
	session := signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	p.session, other.session = session, session
	outside := func(object string, more url.Values) string {
		v := url.Values{"client_id": {p.id}, "request": {object}}
		maps.Copy(v, more)
		return "/oauth2/authorize?" + v.Encode()
	}

	// The object decides, and parameters outside it are ignored (RFC 9101 §6.3).
	a, to := p.browse(t, outside(p.requestObject(t, key, object{"state": "inner", "scope": "openid"}), url.Values{
		"state": {"outer"}, "scope": {"openid email"}, "redirect_uri": {"https://evil.test/"}, "response_type": {"token"}, "prompt": {"login"}, "nonce": {"outer", "twice"},
	}))
	if q := to.Query(); a.status != 302 || !strings.HasPrefix(to.String(), callback) || q.Get("code") == "" || q.Get("state") != "inner" || q.Get("iss") != p.base() {
		t.Fatalf("%d to %s", a.status, to)
	}
	equal(t, "scope", p.exchange(t, to.Query().Get("code"), nil).body["scope"], any("openid"))
	_, to = p.browse(t, outside(p.requestObject(t, key, object{"code_challenge": nil}), url.Values{"code_challenge": {challengeOf(verifier)}}))
	equal(t, "challenge outside", to.Query().Get("error"), "invalid_request")

	// Refusals are sent to a redirect URI outside the object if the application has registered it.
	unsigned := func() string {
		body, err := json.Marshal(p.request(nil))
		if err != nil {
			t.Fatal(err)
		}
		token, err := jws.Sign(body, jws.WithInsecureNoSignature())
		if err != nil {
			t.Fatal(err)
		}
		return string(token)
	}()
	public, err := json.Marshal(key.public)
	if err != nil {
		t.Fatal(err)
	}
	hmac, err := jws.Sign([]byte(`{}`), jws.WithKey(jwa.HS256(), public))
	if err != nil {
		t.Fatal(err)
	}
	assertion := key.assert(t, p.id, p.base(), nil)
	refusals := map[string]struct{ code, object string }{
		"unsigned": {"request_not_supported", unsigned}, "HMAC with the public key": {"invalid_request_object", string(hmac)}, "no JWT": {"invalid_request_object", "x"},
		"another key": {"invalid_request_object", p.requestObject(t, stranger, nil)}, "an assertion": {"invalid_request_object", assertion},
		"another client": {"invalid_request_object", other.requestObject(t, key, nil)}, "another tenant": {"invalid_request_object", p.requestObject(t, key, object{"aud": "https://b.example.com"})},
		"expired": {"invalid_request_object", p.requestObject(t, key, object{"exp": time.Now().Add(-time.Minute).Unix()})}, "nested": {"invalid_request_object", p.requestObject(t, key, object{"request": assertion})},
		"large": {"invalid_request_object", p.requestObject(t, key, object{"x": strings.Repeat("x", 7000)}) + "."},
	}
	push := func(p *relyingParty, more url.Values) answer {
		v := url.Values{"client_id": {p.id}, "client_secret": {p.secret}}
		maps.Copy(v, more)
		return p.present(t, "/oauth2/par", nil, v)
	}
	for what, test := range refusals {
		a, to := p.browse(t, outside(test.object, url.Values{"redirect_uri": {callback}, "state": {"outer"}}))
		equal(t, what, []any{a.status, to.Query().Get("error"), to.Query().Get("state")}, []any{302, test.code, "outer"})
		a, _ = p.browse(t, outside(test.object, url.Values{"redirect_uri": {"https://evil.test/"}}))
		equal(t, what+", page", []any{a.status, a.header.Get("Location")}, []any{400, ""})
		pushed := push(p, url.Values{"request": {test.object}})
		if code := pushed.code(); pushed.status != 400 || code != test.code && code != "invalid_request" {
			t.Errorf("%s, pushed: %d %s", what, pushed.status, code)
		}
		pushed = push(p, url.Values{"request": {test.object}, "redirect_uri": {callback}})
		equal(t, what+", pushed", []any{pushed.status, pushed.code()}, []any{400, test.code})
	}
	_, to = p.browse(t, outside(p.requestObject(t, key, nil), url.Values{"redirect_uri": {callback}, "request_uri": {"https://app.example.com/r"}}))
	equal(t, "both", to.Query().Get("error"), "invalid_request")
	a, _ = p.browse(t, outside(p.requestObject(t, key, object{"redirect_uri": "https://evil.test/"}), url.Values{"redirect_uri": {callback}}))
	equal(t, "redirect URI inside", a.status, 400)

	// A request object is no client assertion (RFC 9101 §10.8).
	signs := newParty(t, c, object{"name": "Signs", "jwks": keySet(key), "token_endpoint_auth_method": "private_key_jwt", "allowed_scopes": scopes})
	signs.session = session
	a = signs.present(t, "/oauth2/par", nil, asserting(signs.requestObject(t, key, object{"jti": "1"}), url.Values{"client_id": {signs.id}}))
	equal(t, "as assertion", []any{a.status, a.code()}, []any{401, "invalid_client"})

	// Pushed, by clients of both kinds.
	for what, a := range map[string]answer{
		"a secret": push(p, url.Values{"request": {p.requestObject(t, key, nil)}, "state": {"outer"}}),
		"a key":    signs.present(t, "/oauth2/par", nil, asserting(key.assert(t, signs.id, signs.base(), nil), url.Values{"request": {signs.requestObject(t, key, nil)}})),
	} {
		party := map[string]*relyingParty{"a secret": p, "a key": signs}[what]
		if a.status != 201 {
			t.Fatalf("%s: %d %s", what, a.status, a.text)
		}
		_, to := party.browse(t, "/oauth2/authorize?"+url.Values{"client_id": {party.id}, "request_uri": {a.body["request_uri"].(string)}, "state": {"x"}}.Encode())
		if q := to.Query(); q.Get("code") == "" || q.Get("state") != "a b&c=" {
			t.Errorf("%s: %s", what, to)
		}
	}

	// What the application requires.
	strict := newParty(t, c, object{"name": "Strict", "jwks": keySet(key, signerOf(t, stranger.private, "b", "ES256")), "allowed_scopes": scopes, "require_signed_request_object": true, "request_object_signing_alg": "ES256"})
	strict.session = session
	_, to = strict.ask(t, nil)
	equal(t, "not signed", to.Query().Get("error"), "invalid_request")
	equal(t, "not signed, pushed", push(strict, strict.request(nil)).code(), "invalid_request")
	_, to = strict.browse(t, "/oauth2/authorize?"+url.Values{"client_id": {strict.id}, "request": {strict.requestObject(t, key, nil)}}.Encode())
	if to.Query().Get("code") == "" {
		t.Errorf("signed: %s", to)
	}
	fapi := newParty(t, c, object{"name": "Bank", "jwks": keySet(key), "profile": "fapi2", "allowed_scopes": scopes})
	equal(t, "fapi2", fields(c.want(t, 400, "validation_failed", "POST", appsPath, object{"name": "x", "type": "server", "jwks": keySet(key), "profile": "fapi2", "request_object_signing_alg": "RS256"})), []string{"request_object_signing_alg"})
	for code, changes := range map[string]object{"invalid_request_object": nil, "": {"nbf": time.Now().Unix()}} {
		a := fapi.present(t, "/oauth2/par", nil, asserting(key.assert(t, fapi.id, fapi.base(), nil), url.Values{"redirect_uri": {callback}, "request": {fapi.requestObject(t, key, changes)}}))
		if a.code() != code {
			t.Errorf("fapi2 with %v: %d %s", changes, a.status, a.text)
		}
	}

	found := c.want(t, 200, "", "GET", "/.well-known/openid-configuration", nil).body
	equal(t, "metadata", []any{found["request_parameter_supported"], found["request_object_signing_alg_values_supported"], found["request_uri_parameter_supported"]}, []any{true, []any{"RS256", "PS256", "ES256", "EdDSA"}, true})
}

// publishedText serves a text that can change.
func publishedText(t testing.TB) (address string, text *atomic.Value) {
	text = new(atomic.Value)
	text.Store("")
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		if _, err := io.WriteString(rw, text.Load().(string)); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL + "/request.jwt", text
}

// requestObjectsByReference has request objects that are fetched (OIDC Core §6.2, RFC 9101 §5.2).
func requestObjectsByReference(t *testing.T, w *world, c *client) {
	w.ahead.Store(0) // both clocks count here
	member(t, c, "ann@example.com")
	key := newSigner(t, "a")
	address, text := publishedText(t)
	var fetched atomic.Int64
	counted := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { fetched.Add(1) }))
	defer counted.Close()
	elsewhere := httptest.NewServer(http.RedirectHandler(address, http.StatusFound))
	defer elsewhere.Close()
	closed := httptest.NewServer(nil)
	closed.Close()
	hash := func(content string) string {
		sum := sha256.Sum256([]byte(content))
		return base64.RawURLEncoding.EncodeToString(sum[:])
	}
	setup := object{"jwks": keySet(key), "allowed_scopes": []any{"openid", "email"}, "request_uris": []any{address, elsewhere.URL, closed.URL, counted.URL + "/a#b"}}
	p := newParty(t, c, setup)
	p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	visit := func(p *relyingParty, uri string, more url.Values) (answer, url.Values) {
		t.Helper()
		a, to := p.browse(t, "/oauth2/authorize?"+joined(url.Values{"client_id": {p.id}, "request_uri": {uri}}, more).Encode())
		return a, to.Query()
	}
	outside := url.Values{"redirect_uri": {callback}, "state": {"outer"}, "response_type": {"token"}, "scope": {"openid email"}}
	good := p.requestObject(t, key, object{"state": "inner", "scope": "openid"})
	text.Store(good + "\n")
	for what, uri := range map[string]string{"plain": address, "with its hash": address + "#" + hash(good+"\n"), "with another fragment": address + "#1"} {
		_, q := visit(p, uri, outside)
		equal(t, what, []any{q.Get("state"), q.Get("iss")}, []any{"inner", p.base()})
		equal(t, what, p.exchange(t, q.Get("code"), nil).body["scope"], any("openid"))
	}
	refused := func(what, code, uri string, more url.Values) {
		t.Helper()
		a, q := visit(p, uri, joined(outside, more))
		equal(t, what, []any{a.status, q.Get("error"), q.Get("state"), q.Has("code")}, []any{302, code, "outer", false})
	}
	refused("another hash", "invalid_request_uri", address+"#"+hash("x"), nil)
	refused("not registered", "invalid_request_uri", counted.URL+"/other", nil)
	refused("another fragment than the registered one", "invalid_request_uri", counted.URL+"/a#c", nil)
	refused("without the fragment", "invalid_request_uri", counted.URL+"/a", nil)
	refused("another scheme", "invalid_request_uri", "file:///etc/passwd", nil)
	refused("a redirect", "invalid_request_uri", elsewhere.URL, nil)
	refused("no connection", "invalid_request_uri", closed.URL, nil)
	refused("nothing there", "invalid_request_object", counted.URL+"/a#b", nil)
	refused("both", "invalid_request", address, url.Values{"request": {good}})
	refused("twice", "invalid_request", address, url.Values{"request_uri": {address, address}})
	equal(t, "fetched", fetched.Load(), int64(1))
	a, _ := visit(p, address+"/other", url.Values{"redirect_uri": {"https://evil.test/"}})
	equal(t, "page", []any{a.status, a.header.Get("Location")}, []any{400, ""})
	for what, test := range map[string]struct{ code, text string }{
		"unsigned": {"invalid_request_object", unsecured(t, object{"iss": p.id, "aud": p.base(), "client_id": p.id})}, "another key": {"invalid_request_object", p.requestObject(t, newSigner(t, "a"), nil)},
		"nested": {"invalid_request_object", p.requestObject(t, key, object{"request_uri": address})}, "large": {"invalid_request_uri", long(25_000)}, "no JWT": {"invalid_request_object", "<html>"},
	} {
		text.Store(test.text)
		refused(what, test.code, address, nil)
	}

	// A slow address occupies four places of the application, and none of another one.
	release, slow := make(chan struct{}), make(chan struct{}, 8)
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		slow <- struct{}{}
		<-release
	}))
	defer server.Close()
	text.Store(good)
	c.want(t, 200, "", "PATCH", appsPath+"/"+p.applicationID(t, c), object{"request_uris": []any{address, server.URL, counted.URL + "/a#b"}})
	var waiting sync.WaitGroup
	for range 4 {
		waiting.Go(func() {
			p.send(t, "GET", "/oauth2/authorize?"+joined(outside, url.Values{"client_id": {p.id}, "request_uri": {server.URL}}).Encode(), nil, nil)
		})
		<-slow
	}
	refused("four are being fetched", "temporarily_unavailable", address, nil)
	other := newParty(t, c, joinedObjects(setup, object{"name": "Other"}))
	_, q := visit(other, address, outside)
	equal(t, "another application", q.Get("error"), "invalid_request_object") // it is an object of the first
	close(release)
	waiting.Wait()
	_, q = visit(p, address, nil)
	equal(t, "after that", q.Get("code") != "", true)

	// A pushed request has no reference, and applications that have to push requests cause no fetch.
	text.Store(good)
	push := p.present(t, "/oauth2/par", nil, url.Values{"client_id": {p.id}, "client_secret": {p.secret}, "request_uri": {address}})
	equal(t, "pushed", []any{push.status, push.code()}, []any{400, "invalid_request"})
	app := appsPath + "/" + p.applicationID(t, c)
	c.want(t, 200, "", "PATCH", app, object{"require_pushed_authorization_requests": true})
	refused("has to push", "invalid_request", counted.URL+"/a#b", nil)
	c.want(t, 200, "", "POST", app+"/disable", nil)
	refused("disabled", "unauthorized_client", counted.URL+"/a#b", nil)
	equal(t, "fetched", fetched.Load(), int64(1))
	// An application without request_uris has no other reference than that of a pushed request.
	none := newParty(t, c, object{"name": "None", "jwks": keySet(key), "require_signed_request_object": true})
	none.session = p.session
	_, q = visit(none, address, outside)
	equal(t, "none", q.Get("error"), "request_uri_not_supported")
	strict := newParty(t, c, joinedObjects(setup, object{"name": "Strict", "require_signed_request_object": true}))
	strict.session = p.session
	text.Store(strict.requestObject(t, key, nil))
	_, q = visit(strict, address, nil)
	equal(t, "signed, as required", q.Get("code") != "", true)
	found := discoveryOf(t, c)
	equal(t, "metadata", pick(found, "request_uri_parameter_supported", "require_request_uri_registration"), []any{true, true})
}

// assertionAlgs holds a client to the algorithm of its assertions.
func assertionAlgs(t *testing.T, _ *world, c *client) {
	es := newSigner(t, "es")
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	rs := signerOf(t, rsaKey, "rs", "RS256")
	p := newParty(t, c, object{"type": "m2m", "redirect_uris": []any{}, "jwks": keySet(es, rs), "token_endpoint_auth_method": "private_key_jwt", "token_endpoint_auth_signing_alg": "RS256"})
	get := func(by signer) answer {
		t.Helper()
		return p.form(t, nil, asserting(by.assert(t, p.id, p.base(), nil), url.Values{"grant_type": {"client_credentials"}}))
	}
	equal(t, "the registered one", get(rs).status, 200)
	a := get(es)
	equal(t, "another", []any{a.status, a.code(), strings.Contains(a.text, "token_endpoint_auth_signing_alg")}, []any{401, "invalid_client", true})
	c.want(t, 200, "", "PATCH", appsPath+"/"+p.applicationID(t, c), object{"token_endpoint_auth_signing_alg": nil})
	equal(t, "any", get(es).status, 200)
}
