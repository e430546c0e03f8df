package api_test

import (
	"encoding/json"
	"maps"
	"net/url"
	"strings"
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
	equal(t, "metadata", []any{found["request_parameter_supported"], found["request_object_signing_alg_values_supported"], found["request_uri_parameter_supported"]}, []any{true, []any{"RS256", "PS256", "ES256", "EdDSA"}, false})
}
