package api_test

import (
	"crypto/rand"
	"crypto/rsa"
	"net/http"
	"net/url"
	"testing"
	"time"

	"stonetown/oauth/dpop/dpoptest"
)

// profiles locks the settings of an application.
func profiles(t *testing.T, _ *world, c *client) {
	key := newSigner(t, "a")
	setup := object{"name": "Bank", "type": "server", "redirect_uris": []any{callback}, "jwks": keySet(key), "profile": "fapi2"}
	d := c.want(t, 201, "", "POST", appsPath, setup).data()
	members := []string{"profile", "token_endpoint_auth_method", "require_pushed_authorization_requests", "require_pkce", "dpop_bound_access_tokens", "access_token_signing_alg", "id_token_signed_response_alg"}
	shown := func(d object) (values []any) {
		for _, name := range members {
			values = append(values, d[name])
		}
		return values
	}
	fixed := []any{"fapi2", "private_key_jwt", true, true, true, "ES256", "ES256"}
	equal(t, "created", shown(d), fixed)
	app := appsPath + "/" + d["id"].(string)
	for name, change := range map[string]any{
		"token_endpoint_auth_method": "client_secret_basic", "require_pushed_authorization_requests": false, "require_pkce": false, "dpop_bound_access_tokens": nil,
		"access_token_signing_alg": "RS256", "id_token_signed_response_alg": "RS256", "redirect_uris": []any{"http://localhost:1234/cb"},
		"userinfo_signed_response_alg": "RS256", "token_endpoint_auth_signing_alg": "RS256", "request_uris": []any{"https://app.example.com/r"},
	} {
		a := c.want(t, 400, "validation_failed", "PATCH", app, object{name: change})
		equal(t, name, []any{fields(a), a.details()["field_errors"].([]any)[0].(map[string]any)["code"]}, []any{[]string{name}, "locked"})
		equal(t, name+" of a new one", fields(c.want(t, 400, "validation_failed", "POST", appsPath, with(setup, object{name: change}))), []string{name})
	}
	equal(t, "another algorithm", c.want(t, 200, "", "PATCH", app, object{"id_token_signed_response_alg": "PS256", "access_token_signing_alg": "EdDSA"}).data()["id_token_signed_response_alg"], any("PS256"))
	for name, other := range map[string]object{"unknown": {"profile": "fapi1"}, "public": {"profile": "fapi2", "type": "spa"}, "a number": {"profile": 1}} {
		equal(t, name, fields(c.want(t, 400, "validation_failed", "POST", appsPath, with(setup, other))), []string{"profile"})
	}
	equal(t, "no keys", fields(c.want(t, 400, "validation_failed", "POST", appsPath, with(setup, object{"jwks": nil}))), []string{"jwks"})

	// An application gets the profile later, and can leave it.
	plain := c.want(t, 201, "", "POST", appsPath, object{"name": "Shop", "type": "server", "redirect_uris": []any{callback}, "access_token_signing_alg": "RS256"}).data()
	equal(t, "default", plain["profile"], any("default"))
	at := appsPath + "/" + plain["id"].(string)
	equal(t, "later", shown(c.want(t, 200, "", "PATCH", at, object{"profile": "fapi2", "jwks": keySet(key)}).data()), fixed)
	left := c.want(t, 200, "", "PATCH", at, object{"profile": nil, "dpop_bound_access_tokens": false}).data()
	equal(t, "left", []any{left["profile"], left["dpop_bound_access_tokens"], left["require_pkce"]}, []any{"default", false, true})
}

// bank is a client with the profile fapi2.
type bank struct {
	*relyingParty
	signer
	key *dpoptest.Key
}

// post sends a form with an assertion and a proof of possession.
func (b *bank) post(t *testing.T, path string, form url.Values, claims object) answer {
	t.Helper()
	return b.proving(b.key).present(t, path, nil, asserting(b.assert(t, b.id, b.base(), claims), form))
}

// push pushes a request, without the parameters that are nil in changes.
func (b *bank) push(t *testing.T, changes url.Values) answer {
	t.Helper()
	form := b.request(changes)
	form.Del("client_id")
	for name, values := range form {
		if len(values) == 0 {
			delete(form, name)
		}
	}
	return b.post(t, "/oauth2/par", form, nil)
}

// visit brings a request_uri, and returns the parameters of the response.
func (b *bank) visit(t *testing.T, clientID string, requestURI any) (answer, url.Values) {
	t.Helper()
	a, to := b.browse(t, "/oauth2/authorize?"+url.Values{"client_id": {clientID}, "request_uri": {requestURI.(string)}}.Encode())
	return a, to.Query()
}

func (b *bank) code(t *testing.T) string {
	t.Helper()
	_, q := b.visit(t, b.id, b.push(t, nil).body["request_uri"])
	if q.Get("code") == "" || q.Get("iss") != b.base() {
		t.Fatalf("authorize: %v", q)
	}
	return q.Get("code")
}

func (b *bank) redeem(t *testing.T, code string, changes url.Values, claims object) answer {
	t.Helper()
	return b.post(t, "/oauth2/token", joined(url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {callback}, "code_verifier": {verifier}}, changes), claims)
}

// newBank registers a bank; changes are of the application.
func newBank(t *testing.T, c *client, name, session string, changes object) *bank {
	t.Helper()
	b := &bank{signer: newSigner(t, "a"), key: dpoptest.NewKey(t)}
	b.relyingParty = newParty(t, c, joinedObjects(object{"name": name, "profile": "fapi2", "jwks": keySet(b.signer), "allowed_scopes": []any{"openid", "profile", "email", "offline_access"}}, changes))
	b.session = session
	return b
}

// fapi2Modules are those of fapi2-security-profile-final-test-plan, without the prefix
// fapi2-security-profile-final-.
var fapi2Modules = []string{
	"discovery-end-point-verification",
	"happy-flow",
	"user-rejects-authentication",
	"ensure-authorization-request-without-state-success",
	"ensure-authorization-request-without-nonce-success",
	"ensure-authorization-request-with-64-char-nonce-success",
	"ensure-other-scope-order-succeeds",
	"test-claims-parameter-identity-claims",
	"access-token-type-header-case-sensitivity",
	"check-dpop-proof-nbf-exp",
	"ensure-dpopproof-with-iat-10seconds-before-succeeds",
	"ensure-dpopproof-with-iat-10seconds-after-succeeds",
	"ensure-mismatched-dpop-jkt-fails",
	"ensure-token-endpoint-fails-with-mismatched-dpop-proof-jkt",
	"ensure-token-endpoint-fails-with-mismatched-dpop-jkt",
	"ensure-dpopproof-at-par-endpoint-binding-success",
	"ensure-dpop-auth-code-binding-success",
	"ensure-different-nonce-inside-and-outside-request-object",
	"ensure-different-state-inside-and-outside-request-object",
	"ensure-authorization-request-with-long-nonce",
	"ensure-authorization-request-with-long-state",
	"state-only-outside-request-object-not-used",
	"ensure-request-object-without-redirect-uri-fails",
	"ensure-registered-redirect-uri",
	"plain-fapi-tolerate-unregistered-redirect-uri",
	"ensure-unsigned-authorization-request-without-using-par-fails",
	"ensure-redirect-uri-in-authorization-request",
	"ensure-response-type-code-idtoken-fails",
	"australia-connectid-ensure-invalid-purpose-fails",
	"ensure-response-type-token-fails",
	"ensure-client-id-in-token-endpoint",
	"ensure-holder-of-key-required",
	"ensure-authorization-code-is-bound-to-client",
	"attempt-reuse-authorization-code-after-one-second",
	"ensure-token-endpoint-fails-with-expired-auth-code",
	"ensure-signed-client-assertion-with-RS256-fails",
	"ensure-client-assertion-in-token-endpoint",
	"ensure-client-assertion-with-exp-is-5-minutes-in-past-fails",
	"ensure-client-assertion-with-wrong-aud-fails",
	"ensure-client-assertion-with-no-sub-fails",
	"dpop-negative-tests",
	"refresh-token",
	"ensure-server-handles-non-matching-intent-id",
	"test-essential-acr-sca-claim",
	"brazil-ensure-bad-payment-signature-fails",
	"australia-connectid-test-claims-parameter-idtoken-identity-claims",
	"par-ensure-reused-request-uri-prior-to-auth-completion-succeeds",
	"par-attempt-reuse-request_uri",
	"par-attempt-to-use-expired-request_uri",
	"par-ensure-jwt-client-assertions-nbf-8-seconds-in-the-future-is-accepted",
	"par-ensure-jwt-client-assertions-nbf-over-60-seconds-in-the-future-fails",
	"par-attempt-to-use-request_uri-for-different-client",
	"par-authorization-request-containing-request_uri-form-param",
	"par-attempt-invalid-http-method",
	"par-ensure-pkce-required",
	"ensure-pkce-code-verifier-required",
	"incorrect-pkce-code-verifier-rejected",
	"par-plain-pkce-rejected",
	"par-without-duplicate-parameters",
	"par-test-array-as-audience-fails",
	"par-test-par-endpoint-url-as-audience-fails",
	"par-test-token-endpoint-url-as-audience-fails",
}

// fapi2Left are the modules for other variants.
var fapi2Left = map[string]leftOut{
	"ensure-registered-redirect-uri":                                    {"it is not for plain_fapi", nil},
	"australia-connectid-ensure-invalid-purpose-fails":                  {"it is for connectid_au", nil},
	"australia-connectid-test-claims-parameter-idtoken-identity-claims": {"it is for connectid_au", nil},
	"brazil-ensure-bad-payment-signature-fails":                         {"it is for openbanking_brazil", nil},
	"ensure-server-handles-non-matching-intent-id":                      {"it is for openbanking_uk", nil},
	"test-essential-acr-sca-claim":                                      {"it is for openbanking_uk", nil},
}

// fapi2 is the plan for the profile FAPI2SP OP private key + DPoP, and FAPI2SP OP OpenID Connect: its
// variants are plain_fapi, private_key_jwt, dpop and openid_connect.
func fapi2(t *testing.T, w *world, c *client) {
	w.ahead.Store(0)                                                          // both clocks count here
	c.want(t, 200, "", "PATCH", settingsPath, object{"require_state": false}) // state is optional in the plan
	member(t, c, "ann@example.com")
	session := signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	weak, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	rs := signerOf(t, weak, "rs", "RS256")
	first, second := newBank(t, c, "First", session, nil), newBank(t, c, "Second", session, nil)
	withRS := newBank(t, c, "RS256", session, nil)
	c.want(t, 200, "", "PATCH", appsPath+"/"+withRS.applicationID(t, c), object{"jwks": keySet(withRS.signer, rs)})
	refused := func(t *testing.T, a answer, status int, code string) {
		t.Helper()
		equal(t, "refused", []any{a.status, a.body["error"]}, []any{status, code})
	}
	good := func(t *testing.T, a answer) object {
		t.Helper()
		if a.status != 200 {
			t.Fatalf("token: %d %s", a.status, a.text)
		}
		return a.body
	}
	// signsIn pushes a request, and returns the response of the authorization endpoint and the tokens.
	signsIn := func(t *testing.T, changes url.Values) (response url.Values, tokens object) {
		t.Helper()
		a := first.push(t, changes)
		if a.status != 201 {
			t.Fatalf("push: %d %s", a.status, a.text)
		}
		_, response = first.visit(t, first.id, a.body["request_uri"])
		return response, good(t, first.redeem(t, response.Get("code"), nil, nil))
	}
	// outside visits with more parameters than those of the pushed request, which count.
	outside := func(t *testing.T, pushed, outside url.Values) (response url.Values, claims object) {
		t.Helper()
		v := joined(url.Values{"client_id": {first.id}, "request_uri": {first.push(t, pushed).body["request_uri"].(string)}}, outside)
		_, to := first.browse(t, "/oauth2/authorize?"+v.Encode())
		return to.Query(), claimsOf(t, good(t, first.redeem(t, to.Query().Get("code"), nil, nil))["id_token"].(string))
	}
	// proof sends a proof with changed claims to the token endpoint, and one to the UserInfo endpoint.
	proof := func(t *testing.T, changes object) {
		t.Helper()
		form := asserting(first.assert(t, first.id, c.base(), nil), url.Values{"grant_type": {"authorization_code"}, "code": {first.code(t)}, "redirect_uri": {callback}, "code_verifier": {verifier}})
		token := good(t, first.present(t, "/oauth2/token", http.Header{"Dpop": {first.key.Proof(t, "POST", c.base()+"/oauth2/token", "", changes)}}, form))["access_token"].(string)
		h := http.Header{"Authorization": {"DPoP " + token}, "Dpop": {first.key.Proof(t, "GET", c.base()+"/oauth2/userinfo", token, changes)}}
		equal(t, "user information", c.with("").send(t, "GET", "/oauth2/userinfo", h, nil).status, 200)
	}
	// assertion sends a request for tokens with changed claims of the assertion.
	assertion := func(code string, changes object) func(t *testing.T) {
		return func(t *testing.T) { refused(t, first.redeem(t, first.code(t), nil, changes), 401, code) }
	}
	const prefix = "fapi2-security-profile-final-"
	tests := map[string]func(t *testing.T){}
	p := plan{name: prefix + "test-plan", left: map[string]leftOut{}}
	for _, name := range fapi2Modules {
		p.modules = append(p.modules, prefix+name)
	}
	for name, why := range fapi2Left {
		p.left[prefix+name] = why
	}
	for name, module := range map[string]func(t *testing.T){
		"happy-flow": func(t *testing.T) {
			got := good(t, first.redeem(t, first.code(t), nil, nil))
			equal(t, "token_type", got["token_type"], any("DPoP"))
			token := got["access_token"].(string)
			equal(t, "bound", claimsOf(t, token)["cnf"], any(object{"jkt": first.key.Thumbprint}))
			equal(t, "signed by", []any{headerOf(t, token)["alg"], headerOf(t, got["id_token"].(string))["alg"]}, []any{"ES256", "ES256"})
			c.with(token).proving(first.key).want(t, 200, "", "GET", "/oauth2/userinfo", nil)
			c.with(token).want(t, 401, "invalid_token", "GET", "/oauth2/userinfo", nil)
		},
		"test-claims-parameter-identity-claims": func(t *testing.T) {
			_, tokens := signsIn(t, url.Values{"scope": {"openid"}, "claims": {`{"id_token":{"name":{"essential":true},"email":{"essential":true},"given_name":null}}`}})
			equal(t, "scope", tokens["scope"], any("openid"))
			equal(t, "claims", pick(claimsOf(t, tokens["id_token"].(string)), "name", "email", "email_verified"), []any{"Ann", "ann@example.com", nil})
		},
		"discovery-end-point-verification": func(t *testing.T) {
			d := c.with("").want(t, 200, "", "GET", "/.well-known/oauth-authorization-server", nil).body
			equal(t, "iss", []any{d["authorization_response_iss_parameter_supported"], d["issuer"]}, []any{true, c.base()})
		},
		"ensure-unsigned-authorization-request-without-using-par-fails": func(t *testing.T) {
			_, to := first.ask(t, nil)
			equal(t, "error", to.Query().Get("error"), "invalid_request")
		},
		"par-ensure-pkce-required": func(t *testing.T) {
			refused(t, first.push(t, url.Values{"code_challenge": nil, "code_challenge_method": nil}), 400, "invalid_request")
		},
		"par-plain-pkce-rejected": func(t *testing.T) {
			refused(t, first.push(t, url.Values{"code_challenge_method": {"plain"}, "code_challenge": {verifier}}), 400, "invalid_request")
		},
		"ensure-pkce-code-verifier-required": func(t *testing.T) {
			refused(t, first.redeem(t, first.code(t), url.Values{"code_verifier": nil}, nil), 400, "invalid_grant")
		},
		"incorrect-pkce-code-verifier-rejected": func(t *testing.T) {
			refused(t, first.redeem(t, first.code(t), url.Values{"code_verifier": {verifier[1:] + "x"}}, nil), 400, "invalid_grant")
		},
		"ensure-redirect-uri-in-authorization-request": func(t *testing.T) {
			refused(t, first.push(t, url.Values{"redirect_uri": nil}), 400, "invalid_request")
		},
		"plain-fapi-tolerate-unregistered-redirect-uri": func(t *testing.T) {
			refused(t, first.push(t, url.Values{"redirect_uri": {callback + "/other"}}), 400, "invalid_request")
		},
		"ensure-response-type-code-idtoken-fails": func(t *testing.T) {
			refused(t, first.push(t, url.Values{"response_type": {"code id_token"}}), 400, "unsupported_response_type")
		},
		"ensure-response-type-token-fails": func(t *testing.T) {
			refused(t, first.push(t, url.Values{"response_type": {"token"}}), 400, "unsupported_response_type")
		},
		"par-attempt-reuse-request_uri": func(t *testing.T) {
			uri := first.push(t, nil).body["request_uri"]
			first.visit(t, first.id, uri)
			a, _ := first.visit(t, first.id, uri)
			equal(t, "status", a.status, 400)
		},
		"par-attempt-to-use-request_uri-for-different-client": func(t *testing.T) {
			a, _ := second.visit(t, second.id, first.push(t, nil).body["request_uri"])
			equal(t, "status", a.status, 400)
		},
		"par-authorization-request-containing-request_uri-form-param": func(t *testing.T) {
			refused(t, first.push(t, url.Values{"request_uri": {"urn:ietf:params:oauth:request_uri:x"}}), 400, "invalid_request")
		},
		"par-attempt-invalid-http-method": func(t *testing.T) {
			equal(t, "status", c.with("").do(t, "PUT", "/oauth2/par", nil).status, 405)
		},
		"ensure-authorization-code-is-bound-to-client": func(t *testing.T) {
			refused(t, second.redeem(t, first.code(t), nil, nil), 400, "invalid_grant")
		},
		"attempt-reuse-authorization-code-after-one-second": func(t *testing.T) {
			code := first.code(t)
			token := good(t, first.redeem(t, code, nil, nil))["access_token"].(string)
			refused(t, first.redeem(t, code, nil, nil), 400, "invalid_grant")
			c.with(token).proving(first.key).want(t, 401, "invalid_token", "GET", "/oauth2/userinfo", nil)
		},
		"refresh-token": func(t *testing.T) {
			_, q := first.visit(t, first.id, first.push(t, url.Values{"scope": {"openid"}}).body["request_uri"])
			refresh := good(t, first.redeem(t, q.Get("code"), nil, nil))["refresh_token"].(string)
			form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refresh}}
			for range 3 { // it is not rotated
				equal(t, "the same", good(t, first.post(t, "/oauth2/token", form, nil))["refresh_token"], any(refresh))
			}
			refused(t, second.post(t, "/oauth2/token", form, nil), 400, "invalid_grant")
		},
		"ensure-holder-of-key-required": func(t *testing.T) {
			a := first.present(t, "/oauth2/token", nil, asserting(first.assert(t, first.id, c.base(), nil), url.Values{"grant_type": {"authorization_code"}, "code": {first.code(t)}, "redirect_uri": {callback}, "code_verifier": {verifier}}))
			refused(t, a, 400, "invalid_dpop_proof")
		},
		"ensure-dpop-auth-code-binding-success": func(t *testing.T) {
			_, q := first.visit(t, first.id, first.push(t, url.Values{"dpop_jkt": {first.key.Thumbprint}}).body["request_uri"])
			good(t, first.redeem(t, q.Get("code"), nil, nil))
		},
		"ensure-mismatched-dpop-jkt-fails": func(t *testing.T) {
			refused(t, first.push(t, url.Values{"dpop_jkt": {second.key.Thumbprint}}), 400, "invalid_request")
		},
		"ensure-token-endpoint-fails-with-mismatched-dpop-proof-jkt": func(t *testing.T) {
			other := *first
			code := first.code(t) // pushed with a proof of the first key
			other.key = dpoptest.NewKey(t)
			refused(t, other.redeem(t, code, nil, nil), 400, "invalid_grant")
		},
		"ensure-signed-client-assertion-with-RS256-fails": func(t *testing.T) {
			other, code := *withRS, withRS.code(t)
			other.signer = rs
			refused(t, other.redeem(t, code, nil, nil), 401, "invalid_client")
			other.signer = signerOf(t, weak, "rs", "PS256")
			refused(t, other.redeem(t, code, nil, nil), 401, "invalid_client") // the key is registered for RS256
		},
		"par-test-token-endpoint-url-as-audience-fails": func(t *testing.T) {
			refused(t, first.post(t, "/oauth2/par", first.request(nil), object{"aud": c.base() + "/oauth2/token"}), 401, "invalid_client")
		},
		"par-test-par-endpoint-url-as-audience-fails": func(t *testing.T) {
			refused(t, first.post(t, "/oauth2/par", first.request(nil), object{"aud": c.base() + "/oauth2/par"}), 401, "invalid_client")
		},
		"par-test-array-as-audience-fails": func(t *testing.T) {
			refused(t, first.post(t, "/oauth2/par", first.request(nil), object{"aud": []any{c.base()}}), 401, "invalid_client")
		},
		"par-ensure-jwt-client-assertions-nbf-8-seconds-in-the-future-is-accepted": func(t *testing.T) {
			at := time.Now().Add(8 * time.Second).Unix()
			equal(t, "status", first.post(t, "/oauth2/par", first.request(nil), object{"iat": at, "nbf": at}).status, 201)
		},
		"par-ensure-jwt-client-assertions-nbf-over-60-seconds-in-the-future-fails": func(t *testing.T) {
			at := time.Now().Add(70 * time.Second).Unix()
			refused(t, first.post(t, "/oauth2/par", first.request(nil), object{"iat": at, "nbf": at, "exp": at + 60}), 401, "invalid_client")
		},
		"ensure-client-assertion-in-token-endpoint": func(t *testing.T) {
			refused(t, first.form(t, nil, url.Values{"grant_type": {"authorization_code"}, "client_id": {first.id}, "code": {first.code(t)}, "redirect_uri": {callback}, "code_verifier": {verifier}}), 401, "invalid_client")
		},
		"ensure-authorization-request-without-state-success": func(t *testing.T) {
			response, _ := signsIn(t, url.Values{"state": nil})
			equal(t, "state", response.Has("state"), false)
		},
		"ensure-authorization-request-without-nonce-success": func(t *testing.T) {
			_, tokens := signsIn(t, url.Values{"nonce": nil})
			equal(t, "nonce", claimsOf(t, tokens["id_token"].(string))["nonce"], nil)
		},
		"ensure-authorization-request-with-64-char-nonce-success": func(t *testing.T) {
			_, tokens := signsIn(t, url.Values{"nonce": {long(64)}})
			equal(t, "nonce", claimsOf(t, tokens["id_token"].(string))["nonce"], any(long(64)))
		},
		"ensure-authorization-request-with-long-nonce": func(t *testing.T) {
			_, tokens := signsIn(t, url.Values{"nonce": {long(384)}})
			equal(t, "nonce", claimsOf(t, tokens["id_token"].(string))["nonce"], any(long(384)))
		},
		"ensure-authorization-request-with-long-state": func(t *testing.T) {
			response, _ := signsIn(t, url.Values{"state": {long(1024)}})
			equal(t, "state", response.Get("state"), long(1024))
		},
		"ensure-other-scope-order-succeeds": func(t *testing.T) {
			signsIn(t, url.Values{"scope": {"openid email"}})
			signsIn(t, url.Values{"scope": {"email openid"}})
		},
		"access-token-type-header-case-sensitivity": func(t *testing.T) {
			token := good(t, first.redeem(t, first.code(t), nil, nil))["access_token"].(string)
			for _, scheme := range []string{"DPoP", "dpop", "DPOP"} {
				h := http.Header{"Authorization": {scheme + " " + token}, "Dpop": {first.key.Proof(t, "GET", c.base()+"/oauth2/userinfo", token, nil)}}
				equal(t, scheme, c.with("").send(t, "GET", "/oauth2/userinfo", h, nil).status, 200)
			}
		},
		"check-dpop-proof-nbf-exp": func(t *testing.T) {
			proof(t, object{"nbf": time.Now().Unix(), "exp": time.Now().Add(5 * time.Minute).Unix()})
		},
		"ensure-dpopproof-with-iat-10seconds-before-succeeds": func(t *testing.T) { proof(t, object{"iat": time.Now().Add(-10 * time.Second).Unix()}) },
		"ensure-dpopproof-with-iat-10seconds-after-succeeds":  func(t *testing.T) { proof(t, object{"iat": time.Now().Add(10 * time.Second).Unix()}) },
		"ensure-dpopproof-at-par-endpoint-binding-success":    func(t *testing.T) { signsIn(t, nil) }, // push sends a proof
		"ensure-token-endpoint-fails-with-mismatched-dpop-jkt": func(t *testing.T) {
			form := first.request(url.Values{"dpop_jkt": {second.key.Thumbprint}})
			form.Del("client_id")
			pushed := first.present(t, "/oauth2/par", nil, asserting(first.assert(t, first.id, c.base(), nil), form)) // without a proof
			_, response := first.visit(t, first.id, pushed.body["request_uri"])
			refused(t, first.redeem(t, response.Get("code"), nil, nil), 400, "invalid_grant")
		},
		"ensure-different-nonce-inside-and-outside-request-object": func(t *testing.T) {
			_, claims := outside(t, url.Values{"nonce": {"inside"}}, url.Values{"nonce": {"outside"}})
			equal(t, "nonce", claims["nonce"], any("inside"))
		},
		"ensure-different-state-inside-and-outside-request-object": func(t *testing.T) {
			response, _ := outside(t, url.Values{"state": {"inside"}}, url.Values{"state": {"outside"}})
			equal(t, "state", response.Get("state"), "inside")
		},
		"state-only-outside-request-object-not-used": func(t *testing.T) {
			response, claims := outside(t, url.Values{"state": nil}, url.Values{"state": {"outside"}})
			equal(t, "state", []any{response.Has("state"), claims["s_hash"]}, []any{false, nil})
		},
		"ensure-request-object-without-redirect-uri-fails": func(t *testing.T) {
			refused(t, first.push(t, url.Values{"redirect_uri": nil}), 400, "invalid_request")
		},
		"ensure-client-id-in-token-endpoint": func(t *testing.T) {
			refused(t, first.redeem(t, first.code(t), url.Values{"client_id": {second.id}}, nil), 401, "invalid_client")
		},
		"ensure-token-endpoint-fails-with-expired-auth-code": func(t *testing.T) {
			code := first.code(t)
			if _, err := w.db.Exec(t.Context(), `UPDATE codes SET expires_at = $1`, time.Now().UnixMicro()); err != nil {
				t.Fatal(err)
			}
			refused(t, first.redeem(t, code, nil, nil), 400, "invalid_grant")
		},
		"ensure-client-assertion-with-exp-is-5-minutes-in-past-fails": assertion("invalid_client", object{"exp": time.Now().Add(-5 * time.Minute).Unix()}),
		"ensure-client-assertion-with-wrong-aud-fails":                assertion("invalid_client", object{"aud": "https://other.example.com"}),
		"ensure-client-assertion-with-no-sub-fails":                   assertion("invalid_client", object{"sub": nil}),
		"dpop-negative-tests": func(t *testing.T) {
			token := good(t, first.redeem(t, first.code(t), nil, nil))["access_token"].(string)
			target := c.base() + "/oauth2/userinfo"
			make := func(changes object) string { return first.key.Proof(t, "GET", target, token, changes) }
			get := func(scheme string, proofs ...string) int {
				t.Helper()
				return c.with("").send(t, "GET", "/oauth2/userinfo", http.Header{"Authorization": {scheme + " " + token}, "Dpop": proofs}, nil).status
			}
			used := make(nil)
			equal(t, "good", get("DPoP", used), 200)
			now := time.Now().Unix()
			for what, proofs := range map[string][]string{
				"none": nil, "two": {make(nil), make(nil)}, "no JWT": {"x.y"}, "used": {used}, "of another key": {second.key.Proof(t, "GET", target, token, nil)}, "another signature": {make(nil) + "A"},
				"no jti": {make(object{"jti": nil})}, "no htm": {make(object{"htm": nil})}, "no htu": {make(object{"htu": nil})}, "no iat": {make(object{"iat": nil})}, "no ath": {make(object{"ath": nil})},
				"another htm": {make(object{"htm": "POST"})}, "another htu": {make(object{"htu": c.base() + "/oauth2/token"})}, "another ath": {make(object{"ath": "x"})},
				"long ago": {make(object{"iat": now - 600})}, "far ahead": {make(object{"iat": now + 600})}, "an access token": {token},
			} {
				equal(t, what, get("DPoP", proofs...), 401)
			}
			equal(t, "as a bearer token", get("Bearer", make(nil)), 401)
		},
		"par-ensure-reused-request-uri-prior-to-auth-completion-succeeds": func(t *testing.T) {
			// The profile recommends that the second visit succeeds (§5.3.2.2, note 3), and the suite
			// warns. Here the first visit uses the request_uri up; it continues after the sign-in.
			browser := *first
			browser.session = ""
			uri := first.push(t, nil).body["request_uri"]
			_, to := browser.browse(t, "/oauth2/authorize?"+url.Values{"client_id": {first.id}, "request_uri": {uri.(string)}}.Encode())
			equal(t, "page", to.Path, "/auth/sign-in")
			a, _ := browser.visit(t, first.id, uri)
			equal(t, "second visit", a.status, 400)
			browser.session = session
			_, to = browser.browse(t, to.Query().Get("next"))
			equal(t, "the first continues", to.Query().Has("code"), true)
		},
		"par-attempt-to-use-expired-request_uri": func(t *testing.T) {
			uri := first.push(t, nil).body["request_uri"]
			if _, err := w.db.Exec(t.Context(), `UPDATE authorization_requests SET expires_at = $1`, time.Now().UnixMicro()); err != nil {
				t.Fatal(err)
			}
			a, _ := first.visit(t, first.id, uri)
			equal(t, "status", a.status, 400)
		},
		"par-without-duplicate-parameters": func(t *testing.T) { signsIn(t, nil) }, // visit has client_id and request_uri alone
		"user-rejects-authentication": func(t *testing.T) {
			third := newBank(t, c, "Third", session, nil)
			d := c.want(t, 200, "", "GET", appsPath+"?q="+third.id, nil).body["data"].([]any)[0].(map[string]any)
			c.want(t, 200, "", "PATCH", appsPath+"/"+d["id"].(string), object{"first_party": false})
			_, q := third.visit(t, third.id, third.push(t, nil).body["request_uri"])
			equal(t, "asked", q.Has("flow"), true)
			to := c.with(session).want(t, 200, "", "POST", authPath+"/consent", object{"flow_id": third.flow, "decision": "deny"}).data()["redirect_to"].(string)
			_, end := third.browse(t, to)
			equal(t, "error", []any{end.Query().Get("error"), end.Query().Get("iss")}, []any{"access_denied", c.base()})
		},
	} {
		tests[prefix+name] = module
	}
	p.run(t, c, tests)
}
