package api_test

import (
	"crypto/rand"
	"crypto/rsa"
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

// fapi2 has the modules of the plan fapi2-security-profile-final-test-plan, for plain_fapi,
// private_key_jwt, dpop and openid_connect. Each is named as the module is, after
// fapi2-security-profile-final-.
func fapi2(t *testing.T, w *world, c *client) {
	w.ahead.Store(0) // both clocks count here
	member(t, c, "ann@example.com")
	session := signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	weak, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	rs := signerOf(t, weak, "rs", "RS256")
	newBank := func(name string) *bank {
		b := &bank{signer: newSigner(t, "a"), key: dpoptest.NewKey(t)}
		b.relyingParty = newParty(t, c, object{"name": name, "profile": "fapi2", "jwks": keySet(b.signer, rs), "allowed_scopes": []any{"openid", "email", "offline_access"}})
		b.session = session
		return b
	}
	first, second := newBank("First"), newBank("Second")
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
		"par-pkce-verifier-required": func(t *testing.T) {
			refused(t, first.redeem(t, first.code(t), url.Values{"code_verifier": nil}, nil), 400, "invalid_grant")
		},
		"par-incorrect-pkce-code-verifier-rejected": func(t *testing.T) {
			refused(t, first.redeem(t, first.code(t), url.Values{"code_verifier": {verifier[1:] + "x"}}, nil), 400, "invalid_grant")
		},
		"ensure-redirect-uri-in-authorization-request": func(t *testing.T) {
			refused(t, first.push(t, url.Values{"redirect_uri": nil}), 400, "invalid_request")
		},
		"ensure-registered-redirect-uri": func(t *testing.T) {
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
		"par-ensure-request-uri-is-bound-to-client": func(t *testing.T) {
			a, _ := second.visit(t, second.id, first.push(t, nil).body["request_uri"])
			equal(t, "status", a.status, 400)
		},
		"par-rejects-request-uri-in-par-authorization-form-params": func(t *testing.T) {
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
			other := *first
			other.signer = rs
			refused(t, other.redeem(t, first.code(t), nil, nil), 401, "invalid_client")
			other.signer = signerOf(t, weak, "rs", "PS256")
			refused(t, other.redeem(t, first.code(t), nil, nil), 401, "invalid_client") // the key is registered for RS256
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
		"par-ensure-jwt-client-assertion-nbf-8-seconds-in-the-future-is-accepted": func(t *testing.T) {
			at := time.Now().Add(8 * time.Second).Unix()
			equal(t, "status", first.post(t, "/oauth2/par", first.request(nil), object{"iat": at, "nbf": at}).status, 201)
		},
		"par-ensure-jwt-client-assertion-nbf-over-60-seconds-in-the-future-fails": func(t *testing.T) {
			at := time.Now().Add(70 * time.Second).Unix()
			refused(t, first.post(t, "/oauth2/par", first.request(nil), object{"iat": at, "nbf": at, "exp": at + 60}), 401, "invalid_client")
		},
		"ensure-client-assertion-in-token-endpoint": func(t *testing.T) {
			refused(t, first.form(t, nil, url.Values{"grant_type": {"authorization_code"}, "client_id": {first.id}, "code": {first.code(t)}, "redirect_uri": {callback}, "code_verifier": {verifier}}), 401, "invalid_client")
		},
		"user-rejects-authentication": func(t *testing.T) {
			third := newBank("Third")
			d := c.want(t, 200, "", "GET", appsPath+"?q="+third.id, nil).body["data"].([]any)[0].(map[string]any)
			c.want(t, 200, "", "PATCH", appsPath+"/"+d["id"].(string), object{"first_party": false})
			_, q := third.visit(t, third.id, third.push(t, nil).body["request_uri"])
			equal(t, "asked", q.Has("flow"), true)
			to := c.with(session).want(t, 200, "", "POST", authPath+"/consent", object{"flow_id": third.flow, "decision": "deny"}).data()["redirect_to"].(string)
			_, end := third.browse(t, to)
			equal(t, "error", []any{end.Query().Get("error"), end.Query().Get("iss")}, []any{"access_denied", c.base()})
		},
	} {
		t.Run(name, module)
	}
}
