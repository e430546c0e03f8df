package api_test

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// dynamicClient is a client that has registered itself, with the browser of a user.
type dynamicClient struct {
	*relyingParty
	signer
	information object
}

// registerSigner registers a client that authenticates by private_key_jwt.
func registerSigner(t *testing.T, c *client, session string, key signer, metadata object) *dynamicClient {
	t.Helper()
	setup := joinedObjects(object{
		"client_name": "Dynamic", "redirect_uris": []any{callback}, "grant_types": []any{"authorization_code", "refresh_token"}, "token_endpoint_auth_method": "private_key_jwt", "scope": "openid offline_access",
	}, metadata)
	if setup["jwks_uri"] == nil {
		setup["jwks"] = keySet(key)
	}
	r := register(t, c, setup)
	return &dynamicClient{r.party(session), key, r.information}
}

// respond sends an authorization request, with consent, and returns the response.
func (d *dynamicClient) respond(t *testing.T, changes url.Values) url.Values {
	t.Helper()
	_, to := d.ask(t, joined(joined(url.Values{"scope": {"openid offline_access"}}, plain), changes))
	if to.Path == "/auth/consent" {
		next := d.with(d.session).want(t, 200, "", "POST", authPath+"/consent", object{"flow_id": d.flow, "decision": "allow"}).data()["redirect_to"].(string)
		_, to = d.browse(t, next)
	}
	if to.Host != "app.example.com" {
		t.Fatalf("the response leads to %s", to)
	}
	return to.Query()
}

// tokens sends a request for tokens.
func (d *dynamicClient) tokens(t *testing.T, form url.Values) answer {
	t.Helper()
	return d.form(t, nil, asserting(d.assert(t, d.id, d.base(), nil), form))
}

// enter is a whole sign-in.
func (d *dynamicClient) enter(t *testing.T, changes url.Values) answer {
	t.Helper()
	to := callback
	if changes.Has("redirect_uri") {
		to = changes.Get("redirect_uri")
	}
	a := d.tokens(t, url.Values{"grant_type": {"authorization_code"}, "code": {d.respond(t, changes).Get("code")}, "redirect_uri": {to}})
	if a.status != 200 {
		t.Fatalf("tokens: %d %s", a.status, a.text)
	}
	verifiedIDToken(t, d.client, d.id, a.body["id_token"].(string))
	return a
}

// dynamicOP is the plan for the profile Dynamic OP. Its clients send no PKCE, as those of the suite.
func dynamicOP(t *testing.T, w *world, c *client) {
	w.ahead.Store(0) // both clocks count here
	id := member(t, c, "ann@example.com")
	allowRegistration(t, c)
	c.want(t, 200, "", "PATCH", settingsPath, object{"dcr_require_pkce": false})
	session := signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	key := newSigner(t, "a")
	first := registerSigner(t, c, session, key, nil)
	// published is an address with a JSON document that can change.
	published := func(document any) (string, *atomic.Value) {
		at := new(atomic.Value)
		at.Store(document)
		server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			if err := json.NewEncoder(rw).Encode(at.Load()); err != nil {
				t.Error(err)
			}
		}))
		t.Cleanup(server.Close)
		return server.URL + "/document", at
	}
	page := func(t *testing.T, changes url.Values, p *dynamicClient) {
		t.Helper()
		a, to := p.ask(t, changes)
		equal(t, "refused", []any{a.status, to.String()}, []any{400, ""})
	}
	// echoes registers a member that is an address, and signs in.
	echoes := func(member, value string) func(t *testing.T) {
		return func(t *testing.T) {
			p := registerSigner(t, c, session, key, object{member: value})
			equal(t, member, p.information[member], any(value))
			p.enter(t, nil)
		}
	}
	withQuery := callback + "&foo=bar"
	plan{"oidcc-dynamic-certification-test-plan", []string{
		"oidcc-idtoken-rs256",
		"oidcc-idtoken-unsigned",
		"oidcc-userinfo-rs256",
		"oidcc-ensure-redirect-uri-in-authorization-request",
		"oidcc-redirect-uri-query-OK",
		"oidcc-redirect-uri-query-mismatch",
		"oidcc-redirect-uri-query-added",
		"oidcc-redirect-uri-regfrag",
		"oidcc-discovery-endpoint-verification",
		"oidcc-server",
		"oidcc-registration-logo-uri",
		"oidcc-registration-policy-uri",
		"oidcc-registration-tos-uri",
		"oidcc-registration-jwks-uri",
		"oidcc-registration-sector-uri",
		"oidcc-registration-sector-bad",
		"oidcc-server-rotate-keys",
		"oidcc-refresh-token-rp-key-rotation",
		"oidcc-request-uri-unsigned",
		"oidcc-request-uri-signed-rs256",
		"oidcc-ensure-request-object-with-redirect-uri",
		"oidcc-refresh-token",
		"oidcc-ensure-client-assertion-with-iss-aud-succeeds",
	}, map[string]leftOut{
		"oidcc-idtoken-unsigned":     withoutUnsigned["oidcc-idtoken-unsigned"],
		"oidcc-request-uri-unsigned": {"request objects have to be signed", offers("request_object_signing_alg_values_supported", "none")},
	}}.run(t, c, map[string]func(t *testing.T){
		"oidcc-idtoken-rs256": func(t *testing.T) {
			p := registerSigner(t, c, session, key, object{"id_token_signed_response_alg": "RS256"})
			equal(t, "alg", headerOf(t, p.enter(t, nil).body["id_token"].(string))["alg"], any("RS256"))
		},
		"oidcc-userinfo-rs256": func(t *testing.T) {
			p := registerSigner(t, c, session, key, object{"userinfo_signed_response_alg": "RS256"})
			a := c.with(p.enter(t, nil).body["access_token"].(string)).want(t, 200, "", "GET", "/oauth2/userinfo", nil)
			equal(t, "media type", a.header.Get("Content-Type"), "application/jwt")
			equal(t, "claims", pick(signedBy(t, c, a.text, "RS256", "JWT"), "iss", "aud", "sub"), []any{c.base(), any(p.id), any(id)})
		},
		"oidcc-request-uri-signed-rs256": func(t *testing.T) {
			weak, err := rsa.GenerateKey(rand.Reader, 2048)
			if err != nil {
				t.Fatal(err)
			}
			by := signerOf(t, weak, "rs", "RS256")
			at, document := publishedText(t)
			p := registerSigner(t, c, session, by, object{"request_uris": []any{at + "#registered"}, "request_object_signing_alg": "RS256"})
			document.Store(p.requestObject(t, by, object{"state": "inner", "scope": "openid", "code_challenge": nil, "code_challenge_method": nil}))
			_, to := p.browse(t, "/oauth2/authorize?"+url.Values{"client_id": {p.id}, "request_uri": {at + "#registered"}, "response_type": {"code"}, "scope": {"openid"}}.Encode())
			equal(t, "consent", to.Path, "/auth/consent")
			next := p.with(session).want(t, 200, "", "POST", authPath+"/consent", object{"flow_id": p.flow, "decision": "allow"}).data()["redirect_to"].(string)
			_, to = p.browse(t, next)
			equal(t, "state", to.Query().Get("state"), "inner")
			a := p.tokens(t, url.Values{"grant_type": {"authorization_code"}, "code": {to.Query().Get("code")}, "redirect_uri": {callback}})
			equal(t, "status", a.status, 200)
		},
		"oidcc-ensure-redirect-uri-in-authorization-request": func(t *testing.T) {
			page(t, url.Values{"redirect_uri": nil}, registerSigner(t, c, session, key, object{"redirect_uris": []any{callback, "https://app.example.com/other"}}))
		},
		"oidcc-redirect-uri-query-OK": func(t *testing.T) {
			p := registerSigner(t, c, session, key, object{"redirect_uris": []any{withQuery}})
			response := p.respond(t, url.Values{"redirect_uri": {withQuery}})
			equal(t, "query", []any{response.Get("tab"), response.Get("foo"), response.Get("code") != ""}, []any{"1", "bar", true})
			p.enter(t, url.Values{"redirect_uri": {withQuery}})
		},
		"oidcc-redirect-uri-query-mismatch": func(t *testing.T) { page(t, url.Values{"redirect_uri": {"https://app.example.com/cb?tab=2"}}, first) },
		"oidcc-redirect-uri-query-added": func(t *testing.T) {
			p := registerSigner(t, c, session, key, object{"redirect_uris": []any{"https://app.example.com/none"}})
			page(t, url.Values{"redirect_uri": {"https://app.example.com/none?foo=bar"}}, p)
		},
		"oidcc-redirect-uri-regfrag": func(t *testing.T) {
			a := c.do(t, "POST", registerPath, object{"redirect_uris": []any{callback + "#foobar"}})
			equal(t, "refused", []any{a.status, a.code()}, []any{400, "invalid_redirect_uri"})
		},
		"oidcc-discovery-endpoint-verification": func(t *testing.T) {
			verifyDiscovery(t, c)
			equal(t, "registration_endpoint", discoveryOf(t, c)["registration_endpoint"], any(c.base()+registerPath))
		},
		"oidcc-server": func(t *testing.T) {
			a := first.enter(t, nil)
			equal(t, "user information", c.with(a.body["access_token"].(string)).want(t, 200, "", "GET", "/oauth2/userinfo", nil).body["sub"], any(id))
		},
		"oidcc-registration-logo-uri": func(t *testing.T) {
			const logo = "https://app.example.com/logo.png"
			p := registerSigner(t, c, session, key, object{"logo_uri": logo})
			equal(t, "logo_uri", p.information["logo_uri"], any(logo))
			_, to := p.ask(t, nil)
			if shown := c.visit(t, "GET", to.RequestURI(), asBrowser(session), nil); !strings.Contains(shown.html, `src="`+logo+`"`) {
				t.Errorf("%s does not show the logo: %s", to, shown.html)
			}
		},
		"oidcc-registration-policy-uri": echoes("policy_uri", "https://app.example.com/policy"),
		"oidcc-registration-tos-uri":    echoes("tos_uri", "https://app.example.com/tos"),
		"oidcc-registration-jwks-uri": func(t *testing.T) {
			at, _ := published(keySet(key))
			registerSigner(t, c, session, key, object{"jwks_uri": at}).enter(t, nil)
		},
		"oidcc-registration-sector-uri": func(t *testing.T) {
			at, _ := published([]any{"https://app.example.com/other", callback})
			p := registerSigner(t, c, session, key, object{"sector_identifier_uri": at})
			equal(t, "sector_identifier_uri", p.information["sector_identifier_uri"], any(at))
			p.enter(t, nil)
		},
		"oidcc-registration-sector-bad": func(t *testing.T) {
			lacking, _ := published([]any{"https://app.example.com/other"})
			strange, _ := published(object{"redirect_uris": []any{callback}})
			large, _ := published([]any{callback, long(70_000)})
			closed := httptest.NewServer(nil)
			closed.Close()
			for _, at := range []string{lacking, strange, large, closed.URL, "javascript:alert(1)", "https://ann@app.example.com/"} {
				a := c.do(t, "POST", registerPath, object{"redirect_uris": []any{callback}, "sector_identifier_uri": at})
				equal(t, "refused", []any{a.status, a.code()}, []any{400, "invalid_client_metadata"})
			}
		},
		"oidcc-server-rotate-keys": func(t *testing.T) {
			before, _ := c.jwks(t)
			c.want(t, 200, "", "POST", signingKeysPath+"/rotate", object{})
			after, _ := c.jwks(t)
			for _, kid := range before {
				equal(t, "an old key stays", slices.Contains(after, kid), true)
			}
			equal(t, "there is a new one", len(after) > len(before), true)
			first.enter(t, nil)
		},
		"oidcc-refresh-token-rp-key-rotation": func(t *testing.T) {
			at, document := published(keySet(key))
			p := registerSigner(t, c, session, key, object{"jwks_uri": at})
			refresh := p.enter(t, nil).body["refresh_token"].(string)
			p.signer = newSigner(t, "b")
			document.Store(keySet(p.signer))
			form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refresh}}
			equal(t, "by the new key", p.tokens(t, form).status, 200)
		},
		"oidcc-ensure-request-object-with-redirect-uri": func(t *testing.T) {
			response := first.respond(t, url.Values{"request": {unsecured(t, object{"iss": first.id, "aud": c.base(), "redirect_uri": "https://app.example.com/other"})}})
			equal(t, "refused", response.Get("error"), "request_not_supported")
		},
		"oidcc-refresh-token": func(t *testing.T) {
			second := registerSigner(t, c, session, newSigner(t, "c"), object{"client_name": "Second"})
			a := first.enter(t, nil)
			form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {a.body["refresh_token"].(string)}}
			equal(t, "another client", second.tokens(t, form).code(), "invalid_grant")
			renewed := first.tokens(t, form)
			equal(t, "status", renewed.status, 200)
			equal(t, "sub", claimsOf(t, renewed.body["id_token"].(string))["sub"], any(id))
		},
		"oidcc-ensure-client-assertion-with-iss-aud-succeeds": func(t *testing.T) { first.enter(t, nil) }, // its audience is the issuer
	})
}

// registeredWishes are members of registrations that are kept or refused, and never dropped in silence.
func registeredWishes(t *testing.T, _ *world, c *client) {
	allowRegistration(t, c)
	good := object{"redirect_uris": []any{callback}}
	wishes := object{
		"initiate_login_uri": "https://app.example.com/start", "require_auth_time": true, "default_max_age": 60.0, "frontchannel_logout_uri": "https://app.example.com/out", "frontchannel_logout_session_required": true,
	}
	r := register(t, c, joinedObjects(good, wishes))
	for name, value := range wishes {
		equal(t, name, []any{r.information[name], r.want(t, 200, "", "GET", r.path, nil).body[name]}, []any{value, value})
	}
	r = r.put(t, object{"initiate_login_uri": nil, "require_auth_time": nil, "frontchannel_logout_uri": nil})
	equal(t, "removed", []any{r.information["initiate_login_uri"], r.information["require_auth_time"], r.information["frontchannel_logout_uri"]}, []any{nil, nil, nil})
	for what, refused := range map[string]object{
		"pairwise": {"subject_type": "pairwise"}, "encrypted ID tokens": {"id_token_encrypted_response_alg": "RSA-OAEP"}, "unsigned user information": {"userinfo_signed_response_alg": "none"},
		"request_uris with user information": {"request_uris": []any{"https://ann@app.example.com/request.jwt"}}, "default_acr_values": {"default_acr_values": []any{"aal2"}}, "unsigned ID tokens": {"id_token_signed_response_alg": "none"},
		"initiate_login_uri without https": {"initiate_login_uri": "http://app.example.com/start"}, "frontchannel_logout_uri elsewhere": {"frontchannel_logout_uri": "https://other.example.com/out"},
	} {
		a := c.do(t, "POST", registerPath, joinedObjects(good, refused))
		equal(t, what, []any{a.status, a.code(), a.body["error_description"] != ""}, []any{400, "invalid_client_metadata", true})
	}
	register(t, c, joinedObjects(good, object{"request_uris": []any{}, "require_auth_time": false}))
}
