package api_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
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
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"

	"stonetown/oauth/protocol"
)

const assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

// signer is a key of an application, and its public half as a JWK.
type signer struct {
	private crypto.Signer
	public  object
}

func newSigner(t testing.TB, kid string) signer {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return signerOf(t, private, kid, "ES256")
}

func signerOf(t testing.TB, private crypto.Signer, kid, alg string) signer {
	t.Helper()
	imported, err := jwk.Import(private.Public())
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(imported)
	s := signer{private: private, public: object{}}
	if err = errors.Join(err, json.Unmarshal(text, &s.public)); err != nil {
		t.Fatal(err)
	}
	s.public["kid"], s.public["use"], s.public["alg"] = kid, "sig", alg
	return s
}

func keySet(keys ...signer) object {
	list := []any{}
	for _, k := range keys {
		list = append(list, k.public)
	}
	return object{"keys": list}
}

var assertionIDs atomic.Int64

// assert returns a client assertion (RFC 7523) for an audience; nil removes a claim.
func (s signer) assert(t testing.TB, clientID, audience string, changes object) string {
	t.Helper()
	now := time.Now()
	claims := object{"iss": clientID, "sub": clientID, "aud": audience, "jti": fmt.Sprint(assertionIDs.Add(1)), "iat": now.Unix(), "exp": now.Add(time.Minute).Unix()}
	maps.Copy(claims, changes)
	maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
	body, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	header := jws.NewHeaders()
	if err := header.Set(jws.KeyIDKey, s.public["kid"]); err != nil {
		t.Fatal(err)
	}
	alg, _ := jwa.LookupSignatureAlgorithm(s.public["alg"].(string))
	token, err := jws.Sign(body, jws.WithKey(alg, s.private, jws.WithProtectedHeaders(header)))
	if err != nil {
		t.Fatal(err)
	}
	return string(token)
}

// asserting is a form with an assertion.
func asserting(assertion string, more url.Values) url.Values {
	v := url.Values{"client_assertion_type": {assertionType}, "client_assertion": {assertion}}
	maps.Copy(v, more)
	return v
}

func privateKeyJWT(t *testing.T, w *world, c *client) {
	w.ahead.Store(0) // both clocks count here
	base := c.base()
	member(t, c, "ann@example.com")
	key, other := newSigner(t, "a"), newSigner(t, "b")
	setup := object{"name": "Signs", "type": "server", "redirect_uris": []any{callback}, "allowed_scopes": []any{"openid", "resources:read"}, "token_endpoint_auth_method": "private_key_jwt"}
	form := func(changes object) object {
		f := maps.Clone(setup)
		maps.Copy(f, changes)
		return f
	}
	for field, bad := range map[string]object{
		"jwks": {}, "jwks_uri": {"jwks": keySet(key), "jwks_uri": "https://example.com/keys"},
	} {
		equal(t, field, fields(c.want(t, 400, "validation_failed", "POST", appsPath, form(bad))), []string{field})
	}
	secretKey := maps.Clone(key.public)
	secretKey["d"] = "AAAA"
	a := c.want(t, 400, "validation_failed", "POST", appsPath, form(object{"jwks": object{"keys": []any{secretKey}}}))
	equal(t, "private key", fields(a), []string{"jwks"})

	d := c.want(t, 201, "", "POST", appsPath, form(object{"jwks": keySet(key, other)})).data()
	equal(t, "application", []any{d["client_secret"], d["can_rotate_secret"], d["jwks"]}, []any{nil, false, any(keySet(key, other))})
	c.want(t, 400, "not_applicable", "POST", appsPath+"/"+d["id"].(string)+"/rotate-secret", object{})
	app := &relyingParty{client: c.with(""), id: d["client_id"].(string)}
	app.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	classic := newParty(t, c, nil)
	page := newParty(t, c, object{"name": "Page", "type": "spa"})
	assert := func(changes object) string { return key.assert(t, app.id, base, changes) }

	// At all endpoints, with client_id or without.
	tokens := app.form(t, nil, asserting(assert(nil), url.Values{
		"grant_type": {"authorization_code"}, "code": {app.code(t, nil)}, "redirect_uri": {callback}, "code_verifier": {verifier}, "client_id": {app.id},
	}))
	equal(t, "code", tokens.status, 200)
	access, idToken := tokens.body["access_token"].(string), tokens.body["id_token"].(string)
	tokens = app.form(t, nil, asserting(other.assert(t, app.id, base+protocol.TokenPath, nil), url.Values{"grant_type": {"refresh_token"}, "refresh_token": {tokens.body["refresh_token"].(string)}}))
	equal(t, "refresh", tokens.status, 200)
	pushed := app.present(t, protocol.PushPath, nil, asserting(key.assert(t, app.id, base+protocol.PushPath, nil), app.request(nil)))
	equal(t, "push", pushed.status, 201)
	_, to := app.browse(t, "/oauth2/authorize?"+url.Values{"client_id": {app.id}, "request_uri": {pushed.body["request_uri"].(string)}}.Encode())
	if to.Query().Get("code") == "" {
		t.Errorf("pushed request led to %s", to)
	}
	equal(t, "device", app.present(t, protocol.DevicePath, nil, asserting(assert(nil), nil)).status, 200)
	a = app.present(t, introspectPath, nil, asserting(assert(nil), url.Values{"token": {access}}))
	equal(t, "introspect", []any{a.status, a.body["active"], a.body["client_id"]}, []any{200, true, app.id})
	equal(t, "revoke", app.present(t, revokePath, nil, asserting(assert(nil), url.Values{"token": {access}})).status, 200)
	a = app.present(t, introspectPath, nil, asserting(assert(nil), url.Values{"token": {access}}))
	equal(t, "revoked", []any{a.status, a.body["active"]}, []any{200, false})

	// All endpoints refuse invalid assertions: those that the application signed with the reason,
	// the others with the same message.
	used := assert(nil)
	good := url.Values{"grant_type": {"client_credentials"}}
	equal(t, "client credentials", app.form(t, nil, asserting(used, good)).status, 200)
	words := ""
	for path, more := range map[string]url.Values{protocol.TokenPath: good, protocol.PushPath: app.request(url.Values{"client_id": nil}), protocol.DevicePath: {}, introspectPath: {"token": {access}}, revokePath: {"token": {access}}} {
		maps.DeleteFunc(more, func(_ string, values []string) bool { return values == nil })
		for reason, assertion := range map[string]string{
			"its jti was used before": used, "aud must name only this server": key.assert(t, app.id, "https://another.test", nil), "exp is in the past": assert(object{"exp": time.Now().Unix() - 1}),
			"its lifetime is longer than 3600 seconds": assert(object{"exp": time.Now().Unix() + 3660}),
		} {
			a := app.present(t, path, nil, asserting(assertion, more))
			equal(t, path+": "+reason, []any{a.status, a.code(), a.body["message"]}, []any{401, "invalid_client", "the client assertion is refused: " + reason})
			if !strings.Contains(w.log.String(), reason) {
				t.Errorf("the reason %q is not in the log", reason)
			}
		}
		for what, assertion := range map[string]string{
			"nonsense": "x", "wrong key": signer{other.private, key.public}.assert(t, app.id, base, nil), "unknown key": newSigner(t, "x").assert(t, app.id, base, nil),
			"no jti": assert(object{"jti": nil}), "of another": key.assert(t, classic.id, base, nil), "of a page": key.assert(t, page.id, base, nil), "of nobody": key.assert(t, "client_x", base, nil),
			"access token": access, "ID token": idToken,
		} {
			a := app.present(t, path, nil, asserting(assertion, more))
			if words == "" {
				words = a.body["message"].(string)
			}
			equal(t, path+": "+what, []any{a.status, a.code(), a.body["message"], a.header.Get("WWW-Authenticate") != ""}, []any{401, "invalid_client", words, true})
		}
		for what, request := range map[string]struct {
			header http.Header
			form   url.Values
		}{
			"with Basic":       {basic(app.id, "x"), asserting(assert(nil), more)},
			"with a secret":    {nil, asserting(assert(nil), url.Values{"client_secret": {"x"}})},
			"no type":          {nil, url.Values{"client_assertion": {assert(nil)}}},
			"another type":     {nil, url.Values{"client_assertion": {assert(nil)}, "client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:saml2-bearer"}}},
			"type alone":       {nil, url.Values{"client_assertion_type": {assertionType}}},
			"twice":            {nil, url.Values{"client_assertion": {assert(nil), assert(nil)}, "client_assertion_type": {assertionType}}},
			"Basic of another": {basic(classic.id, classic.secret), asserting(assert(nil), more)},
		} {
			v := maps.Clone(more)
			maps.Copy(v, request.form)
			a := app.present(t, path, request.header, v)
			equal(t, path+": "+what, []any{a.status, a.code()}, []any{400, "invalid_request"})
		}
		a := app.present(t, path, nil, asserting(assert(nil), joined(more, url.Values{"client_id": {classic.id}})))
		equal(t, path+": of another", []any{a.status, a.code()}, []any{401, "invalid_client"})
		for what, h := range map[string]http.Header{"secret of nobody": basic(app.id, ""), "a secret": basic(app.id, classic.secret)} {
			equal(t, path+": "+what, app.present(t, path, h, more).status, 401)
		}
	}

	// An hour is the default bound, which the tenant can lower.
	hour := func() string { return assert(object{"exp": time.Now().Unix() + 3600}) }
	equal(t, "for an hour", app.form(t, nil, asserting(hour(), good)).status, 200)
	c.want(t, 200, "", "PATCH", settingsPath, object{"client_assertion_max_s": 300})
	equal(t, "of a tenant with a lower bound", app.form(t, nil, asserting(hour(), good)).body["message"], any("the client assertion is refused: its lifetime is longer than 300 seconds"))
	c.want(t, 200, "", "PATCH", settingsPath, object{"client_assertion_max_s": nil})

	// Of parallel requests with one assertion, one succeeds.
	again := assert(nil)
	var wins atomic.Int32
	var racers sync.WaitGroup
	for range 50 {
		racers.Go(func() {
			if app.form(t, nil, asserting(again, good)).status == 200 {
				wins.Add(1)
			}
		})
	}
	racers.Wait()
	equal(t, "wins", wins.Load(), int32(1))

	// Disabled applications, and applications that return to a secret.
	c.want(t, 200, "", "POST", appsPath+"/"+d["id"].(string)+"/disable", nil)
	equal(t, "disabled", app.form(t, nil, asserting(assert(nil), good)).code(), "unauthorized_client")
	c.want(t, 200, "", "POST", appsPath+"/"+d["id"].(string)+"/enable", nil)
	a = c.want(t, 200, "", "PATCH", appsPath+"/"+d["id"].(string), object{"token_endpoint_auth_method": nil, "jwks": nil})
	equal(t, "default again", []any{a.data()["token_endpoint_auth_method"], a.data()["can_rotate_secret"]}, []any{"client_secret_basic", true})
	equal(t, "signs no more", app.form(t, nil, asserting(assert(nil), good)).code(), "invalid_client")
	app.secret = c.want(t, 200, "", "POST", appsPath+"/"+d["id"].(string)+"/rotate-secret", object{}).data()["client_secret"].(string)
	equal(t, "has a secret", app.form(t, basic(app.id, app.secret), good).status, 200)

	for _, said := range []string{again, used} {
		if strings.Contains(w.log.String(), said) {
			t.Error("an assertion is in the log")
		}
	}
	metadata := c.with("").want(t, 200, "", "GET", "/.well-known/oauth-authorization-server", nil).body
	algs, methods := []any{"RS256", "PS256", "ES256", "EdDSA"}, []any{"client_secret_basic", "client_secret_post", "private_key_jwt"}
	for endpoint, want := range map[string][]any{"token": append(methods[:3:3], "none"), "revocation": append(methods[:3:3], "none"), "introspection": methods} {
		equal(t, endpoint, []any{metadata[endpoint+"_endpoint_auth_methods_supported"], metadata[endpoint+"_endpoint_auth_signing_alg_values_supported"]}, []any{any(want), any(algs)})
	}
}

func publishedKeys(t *testing.T, w *world, c *client) {
	base := c.base()
	one, two := newSigner(t, "1"), newSigner(t, "2")
	var answer atomic.Pointer[http.HandlerFunc]
	var fetches atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		fetches.Add(1)
		(*answer.Load())(rw, r)
	}))
	defer server.Close()
	answers := func(h http.HandlerFunc) { answer.Store(&h) }
	publish := func(keys ...signer) {
		answers(func(rw http.ResponseWriter, _ *http.Request) {
			if err := json.NewEncoder(rw).Encode(keySet(keys...)); err != nil {
				t.Error(err)
			}
		})
	}
	setup := func(uri string) *relyingParty {
		return newParty(t, c, object{"name": "Publishes", "type": "m2m", "redirect_uris": []any{}, "allowed_scopes": []any{"resources:read"}, "token_endpoint_auth_method": "private_key_jwt", "jwks_uri": uri})
	}
	ask := func(p *relyingParty, by signer) outcome {
		before := fetches.Load()
		a := p.form(t, nil, asserting(by.assert(t, p.id, base, nil), url.Values{"grant_type": {"client_credentials"}}))
		return outcome{a.status, a.code(), fetches.Load() - before}
	}
	granted, refused := func(fetches int32) outcome { return outcome{200, "", fetches} }, func(fetches int32) outcome { return outcome{401, "invalid_client", fetches} }

	publish(one)
	p := setup(server.URL + "/keys")
	equal(t, "published", ask(p, one), granted(1))
	equal(t, "kept", ask(p, one), granted(0))
	publish(one, two)
	equal(t, "rotated", ask(p, two), granted(1))
	equal(t, "made up", ask(p, newSigner(t, "x")), refused(0))
	answers(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(500) })
	equal(t, "kept while it is down", ask(p, one), granted(0))

	for what, h := range map[string]http.HandlerFunc{
		"down": func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(500) },
		"redirects": func(rw http.ResponseWriter, r *http.Request) {
			http.Redirect(rw, r, server.URL+"/elsewhere", http.StatusFound)
		},
		"too large": func(rw http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(rw, `{"x":"%s","keys":[]}`, strings.Repeat("x", 1<<20))
		},
		"no set": func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprint(rw, "hello") },
	} {
		answers(h)
		p := setup(server.URL + "/" + url.PathEscape(what))
		equal(t, what, ask(p, one), refused(1))
		equal(t, what+", not asked again at once", ask(p, one), refused(0))
	}
	closed := httptest.NewServer(nil)
	closed.Close()
	equal(t, "unreachable", ask(setup(closed.URL), one), refused(0))
	if !strings.Contains(w.log.String(), "published keys cannot be fetched") {
		t.Error("operators learn nothing")
	}
}

// outcome is the result of a request and the number of times that it fetched keys.
type outcome struct {
	status  int
	code    string
	fetches int32
}
