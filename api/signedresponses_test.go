package api_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"
)

// signedBy returns the claims of a JWT after its algorithm, type and signature were verified with the
// published keys of the tenant.
func signedBy(t *testing.T, c *client, token, alg, typ string) object {
	t.Helper()
	set, err := jwk.Parse([]byte(c.want(t, 200, "", "GET", "/.well-known/jwks.json", nil).text))
	if err != nil {
		t.Fatal(err)
	}
	message, err := jws.ParseString(token)
	if err != nil {
		t.Fatalf("%v: %s", err, token)
	}
	header := message.Signatures()[0].ProtectedHeaders()
	kid, _ := header.KeyID()
	key, ok := set.LookupKeyID(kid)
	if !ok {
		t.Fatalf("key %s is not published", kid)
	}
	by, _ := jwa.LookupSignatureAlgorithm(alg)
	if _, err := jws.Verify([]byte(token), jws.WithKey(by, key)); err != nil {
		t.Fatal(err)
	}
	got, _ := header.Type()
	equal(t, "typ", got, typ)
	return claimsOf(t, token)
}

// responseField matches the parameter response in a page that posts a form.
var responseField = regexp.MustCompile(`name="response" value="([^"]+)"`)

// signedResponses has the responses of the authorization endpoint that are JWTs (JARM).
func signedResponses(t *testing.T, w *world, c *client) {
	w.ahead.Store(0) // both clocks count here
	member(t, c, "ann@example.com")
	p := newParty(t, c, object{"allowed_scopes": []any{"openid"}, "authorization_signed_response_alg": "PS256"})
	p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	response := func(a answer, to *url.URL, mode string) object {
		t.Helper()
		token := to.Query().Get("response")
		if mode == "form_post.jwt" {
			found := responseField.FindStringSubmatch(a.text)
			if a.status != 200 || found == nil {
				t.Fatalf("%d %s", a.status, a.text)
			}
			token = html.UnescapeString(found[1])
		} else {
			q := to.Query()
			equal(t, "only response", []any{a.status, q.Has("code"), q.Has("error"), q.Has("state"), q.Has("iss")}, []any{302, false, false, false, false})
		}
		claims := signedBy(t, c, token, "PS256", "JWT")
		equal(t, "issuer and audience", []any{claims["iss"], claims["aud"]}, []any{p.base(), p.id})
		if left := time.Until(time.Unix(int64(claims["exp"].(float64)), 0)); left < time.Minute || left > 10*time.Minute {
			t.Errorf("valid for %v", left)
		}
		return claims
	}
	for _, mode := range []string{"jwt", "query.jwt", "form_post.jwt"} {
		a, to := p.ask(t, url.Values{"response_mode": {mode}})
		got := response(a, to, mode)
		equal(t, mode, []any{got["state"], got["error"]}, []any{"a b&c=", nil})
		equal(t, mode+", redeemed", p.exchange(t, got["code"].(string), nil).status, 200)

		a, to = p.ask(t, url.Values{"response_mode": {mode}, "scope": {"users:write"}})
		got = response(a, to, mode)
		equal(t, mode+", refused", []any{got["state"], got["error"], got["code"]}, []any{"a b&c=", "invalid_scope", nil})

		// After the user has signed in, the request still has its mode.
		stored := p.present(t, "/oauth2/par", nil, joined(p.request(url.Values{"response_mode": {mode}}), url.Values{"client_secret": {p.secret}})).body["request_uri"].(string)
		a, to = p.browse(t, "/oauth2/authorize?"+url.Values{"client_id": {p.id}, "request_uri": {stored}}.Encode())
		if got = response(a, to, mode); got["code"] == nil {
			t.Errorf("%s, pushed: %v", mode, got)
		}

		// The response is no ID token, although it is for the application and has its typ.
		_, to = p.ask(t, url.Values{"response_mode": {"query.jwt"}})
		_, to = p.ask(t, url.Values{"id_token_hint": {to.Query().Get("response")}})
		equal(t, "as a hint", to.Query().Get("error"), "invalid_request")
	}
	_, to := p.ask(t, url.Values{"response_mode": {"fragment.jwt"}})
	equal(t, "fragment", to.Query().Get("error"), "invalid_request")
	equal(t, "fapi2", fields(c.want(t, 400, "validation_failed", "POST", appsPath, object{"name": "x", "type": "server", "jwks": keySet(newSigner(t, "a")), "profile": "fapi2", "authorization_signed_response_alg": "RS256"})), []string{"authorization_signed_response_alg"})
	found := c.want(t, 200, "", "GET", "/.well-known/openid-configuration", nil).body
	equal(t, "metadata", []any{found["response_modes_supported"], found["authorization_signing_alg_values_supported"]}, []any{
		[]any{"query", "form_post", "jwt", "query.jwt", "form_post.jwt"}, found["id_token_signing_alg_values_supported"],
	})
}

// signedIntrospection has the introspection responses that are JWTs (RFC 9701).
func signedIntrospection(t *testing.T, w *world, c *client) {
	w.ahead.Store(0) // both clocks count here
	member(t, c, "ann@example.com")
	p := newParty(t, c, object{"allowed_scopes": []any{"openid"}, "introspection_signed_response_alg": "EdDSA"})
	other := newParty(t, c, object{"name": "Other"})
	p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	token := p.exchange(t, p.code(t, nil), nil).body["access_token"].(string)
	introspect := func(by *relyingParty, token, accept string) answer {
		t.Helper()
		return by.present(t, "/oauth2/introspect", http.Header{"Accept": {accept}}, url.Values{"client_id": {by.id}, "client_secret": {by.secret}, "token": {token}})
	}
	const media = "application/token-introspection+jwt"
	plain := introspect(p, token, "application/json")
	equal(t, "plain", []any{plain.header.Get("Content-Type"), plain.body["active"]}, []any{"application/json", true})
	for _, refused := range []string{"*/*", "application/jwt", media + ";q=0", "application/json, text/html;q=0.5"} {
		equal(t, refused, introspect(p, token, refused).header.Get("Content-Type"), "application/json")
	}
	for _, accept := range []string{media, "text/html, " + media + ";q=0.9, */*"} {
		a := introspect(p, token, accept)
		equal(t, accept, []any{a.status, a.header.Get("Content-Type"), a.header.Get("Cache-Control")}, []any{200, media, "no-store"})
		claims := signedBy(t, c, a.text, "EdDSA", "token-introspection+jwt")
		equal(t, accept, []any{claims["iss"], claims["aud"], claims["token_introspection"]}, []any{p.base(), p.id, any(map[string]any(plain.body))})
		if claims["sub"] != nil || claims["exp"] != nil || claims["iat"] == nil { // RFC 9701 §5
			t.Errorf("%v", claims)
		}
	}
	// A token that is not valid, or not the client's, is not active.
	for what, a := range map[string]answer{"no token": introspect(p, "x", media), "another client": introspect(other, token, media)} {
		alg := map[string]string{"no token": "EdDSA", "another client": "ES256"}[what]
		equal(t, what, signedBy(t, c, a.text, alg, "token-introspection+jwt")["token_introspection"], any(map[string]any{"active": false}))
	}
	signed := introspect(p, token, media).text
	equal(t, "as an access token", p.with(signed).do(t, "GET", "/oauth2/userinfo", nil).status, 401)
	a := p.present(t, "/oauth2/introspect", http.Header{"Accept": {media}}, url.Values{"client_id": {p.id}, "client_secret": {"cs_x"}, "token": {token}})
	equal(t, "not authenticated", []any{a.status, a.code(), a.header.Get("Content-Type")}, []any{401, "invalid_client", "application/json"})
	found := c.want(t, 200, "", "GET", "/.well-known/openid-configuration", nil).body
	equal(t, "metadata", found["introspection_signing_alg_values_supported"], found["id_token_signing_alg_values_supported"])
}

// signedUserInfo has the responses of the UserInfo endpoint that are JWTs (OIDC Core §5.3.2).
func signedUserInfo(t *testing.T, w *world, c *client) {
	w.ahead.Store(0) // both clocks count here
	id := member(t, c, "ann@example.com")
	p := newParty(t, c, object{"allowed_scopes": []any{"openid", "email"}, "userinfo_signed_response_alg": "PS256"})
	p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	got := p.exchange(t, p.code(t, url.Values{"scope": {"openid email"}}), nil)
	by := c.with(got.body["access_token"].(string))
	for _, method := range []string{"GET", "POST"} {
		a := by.want(t, 200, "", method, "/oauth2/userinfo", nil)
		equal(t, method, a.header.Get("Content-Type"), "application/jwt")
		equal(t, method, map[string]any(signedBy(t, c, a.text, "PS256", "JWT")), map[string]any{"iss": c.base(), "aud": p.id, "sub": id, "email": "ann@example.com", "email_verified": true})
	}
	signed := by.want(t, 200, "", "GET", "/oauth2/userinfo", nil).text
	_, to := p.ask(t, url.Values{"id_token_hint": {signed}})
	equal(t, "as a hint", to.Query().Get("error"), "invalid_request")
	equal(t, "as an access token", c.with(signed).do(t, "GET", "/oauth2/userinfo", nil).status, 401)
	// Refusals are JSON, and so are responses to applications without an algorithm.
	equal(t, "refused", c.with("x").want(t, 401, "invalid_token", "GET", "/oauth2/userinfo", nil).header.Get("Content-Type"), "application/json")
	c.want(t, 200, "", "PATCH", appsPath+"/"+p.applicationID(t, c), object{"userinfo_signed_response_alg": nil})
	equal(t, "JSON", by.userInfoOf(t, got.body["access_token"])["sub"], any(id))
	found := discoveryOf(t, c)
	equal(t, "metadata", found["userinfo_signing_alg_values_supported"], found["id_token_signing_alg_values_supported"])
}
