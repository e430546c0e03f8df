package api_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// basicModules are those of oidcc-basic-certification-test-plan and, with the response mode
// form_post, of oidcc-formpost-basic-certification-test-plan.
var basicModules = []string{
	"oidcc-server",
	"oidcc-response-type-missing",
	"oidcc-idtoken-signature",
	"oidcc-idtoken-unsigned",
	"oidcc-userinfo-get",
	"oidcc-userinfo-post-header",
	"oidcc-userinfo-post-body",
	"oidcc-ensure-request-without-nonce-succeeds-for-code-flow",
	"oidcc-scope-profile",
	"oidcc-scope-email",
	"oidcc-scope-address",
	"oidcc-scope-phone",
	"oidcc-scope-all",
	"oidcc-alternate-happy-flow",
	"oidcc-display-page",
	"oidcc-display-popup",
	"oidcc-prompt-login",
	"oidcc-prompt-none-not-logged-in",
	"oidcc-prompt-none-logged-in",
	"oidcc-max-age-1",
	"oidcc-max-age-10000",
	"oidcc-ensure-request-with-unknown-parameter-succeeds",
	"oidcc-id-token-hint",
	"oidcc-login-hint",
	"oidcc-ui-locales",
	"oidcc-claims-locales",
	"oidcc-ensure-request-with-acr-values-succeeds",
	"oidcc-codereuse",
	"oidcc-codereuse-30seconds",
	"oidcc-ensure-registered-redirect-uri",
	"oidcc-ensure-post-request-succeeds",
	"oidcc-server-client-secret-post",
	"oidcc-request-uri-unsigned-supported-correctly-or-rejected-as-unsupported",
	"oidcc-unsigned-request-object-supported-correctly-or-rejected-as-unsupported",
	"oidcc-claims-essential",
	"oidcc-ensure-request-object-with-redirect-uri",
	"oidcc-refresh-token",
	"oidcc-ensure-request-with-valid-pkce-succeeds",
}

// withoutUnsigned are the modules for tokens without a signature.
var withoutUnsigned = map[string]leftOut{
	"oidcc-idtoken-unsigned": {"ID tokens are always signed", offers("id_token_signing_alg_values_supported", "none")},
}

// basicOP is the plan for the profile Basic OP.
func basicOP(t *testing.T, w *world, c *client) {
	plan{"oidcc-basic-certification-test-plan", basicModules, withoutUnsigned}.run(t, c, basicTests(t, newSuite(t, w, c, "", nil)))
}

// formPostOP is the plan for the profile Form Post OP.
func formPostOP(t *testing.T, w *world, c *client) {
	plan{"oidcc-formpost-basic-certification-test-plan", basicModules, withoutUnsigned}.run(t, c, basicTests(t, newSuite(t, w, c, "form_post", nil)))
}

func basicTests(t *testing.T, s *opSuite) map[string]func(t *testing.T) {
	c, first, second := s.c, s.first, s.second
	discovery := discoveryOf(t, c)
	profile := object{"name": "Ann", "preferred_username": "ann", "website": "https://ann.example.com", "zoneinfo": "Europe/Zurich", "birthdate": "1990-02-03"}
	address, phone := object{"locality": "Bern", "country": "CH"}, "+41441234567"
	// again is a second request of the same browser; both ID tokens are about the same sign-in.
	again := func(changes, later url.Values) func(t *testing.T) {
		return func(t *testing.T) {
			_, before := s.flow(t, changes)
			_, after := s.flow(t, later)
			equal(t, "the same sign-in", []any{after["sub"], after["auth_time"]}, []any{before["sub"], before["auth_time"]})
		}
	}
	// fresh is a request for which the user, who is signed in, has to sign in again.
	fresh := func(t *testing.T, before object, changes url.Values) {
		t.Helper()
		_, to, _ := s.visit(t, first, changes)
		equal(t, "page", to.Path, "/auth/sign-in")
		s.signIn(t)
		_, _, response := s.open(t, first, to.Query().Get("next"))
		_, after := s.finish(t, first, response)
		equal(t, "sub", after["sub"], before["sub"])
		if after["auth_time"].(float64) <= before["auth_time"].(float64) {
			t.Errorf("auth_time %v, before %v", after["auth_time"], before["auth_time"])
		}
	}
	// aged makes the sessions an hour old.
	aged := func(t *testing.T) {
		t.Helper()
		if _, err := s.w.db.Exec(t.Context(), `UPDATE sessions SET auth_time = auth_time - 3600000000, created_at = created_at - 3600000000`); err != nil {
			t.Fatal(err)
		}
	}
	reuse := func(pause time.Duration) func(t *testing.T) {
		return func(t *testing.T) {
			_, _, response := s.visit(t, first, nil)
			code := s.code(t, response)
			tokens := s.redeem(t, first, code)
			equal(t, "first", tokens.status, 200)
			// The pause, for the code alone.
			if _, err := s.w.db.Exec(t.Context(), `UPDATE codes SET expires_at = expires_at - $1`, pause.Microseconds()); err != nil {
				t.Fatal(err)
			}
			a := s.redeem(t, first, code)
			equal(t, "second", []any{a.status, a.code()}, []any{400, "invalid_grant"})
			c.with(tokens.body["access_token"].(string)).want(t, 401, "invalid_token", "GET", "/oauth2/userinfo", nil)
		}
	}
	return map[string]func(t *testing.T){
		"oidcc-server": func(t *testing.T) {
			tokens, claims := s.flow(t, url.Values{"nonce": {"n-7"}})
			equal(t, "ID token", []any{claims["nonce"], claims["sub"], claims["aud"]}, []any{"n-7", s.userID, first.id})
			equal(t, "user information", s.userInfo(t, tokens)["sub"], claims["sub"])
		},
		"oidcc-response-type-missing": s.errorOf("invalid_request", url.Values{"response_type": nil}),
		"oidcc-idtoken-signature": func(t *testing.T) {
			allowRegistration(t, c)
			p := register(t, c, object{"redirect_uris": []any{callback}}).party(first.session)
			c.want(t, 200, "", "PATCH", appsPath+"/"+p.applicationID(t, c), object{"first_party": true})
			_, _, response := s.visit(t, p, joined(pkce(), nil))
			got := p.exchange(t, s.code(t, response), nil)
			verifiedIDToken(t, c, p.id, got.body["id_token"].(string))
			equal(t, "alg", headerOf(t, got.body["id_token"].(string))["alg"], any("RS256"))
		},
		"oidcc-userinfo-get": func(t *testing.T) {
			tokens, claims := s.flow(t, nil)
			a := c.with(tokens["access_token"].(string)).want(t, 200, "", "GET", "/oauth2/userinfo", nil)
			equal(t, "answer", []any{a.body["sub"], a.body["email"], a.body["email_verified"]}, []any{claims["sub"], "ann@example.com", true})
		},
		"oidcc-userinfo-post-header": func(t *testing.T) {
			tokens, claims := s.flow(t, nil)
			equal(t, "sub", c.with(tokens["access_token"].(string)).want(t, 200, "", "POST", "/oauth2/userinfo", nil).body["sub"], claims["sub"])
		},
		"oidcc-userinfo-post-body": func(t *testing.T) {
			tokens, claims := s.flow(t, nil)
			form := url.Values{"access_token": {tokens["access_token"].(string)}}.Encode()
			a := c.with("").send(t, "POST", "/oauth2/userinfo", http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, []byte(form))
			equal(t, "answer", []any{a.status, a.body["sub"]}, []any{200, claims["sub"]})
		},
		"oidcc-ensure-request-without-nonce-succeeds-for-code-flow": func(t *testing.T) {
			_, claims := s.flow(t, url.Values{"nonce": nil})
			equal(t, "nonce", claims["nonce"], nil)
		},
		"oidcc-scope-profile": s.scope("openid profile", profile),
		"oidcc-scope-email":   s.scope("openid email", object{"email": "ann@example.com", "email_verified": true}),
		"oidcc-scope-address": s.scope("openid address", object{"address": address}),
		"oidcc-scope-phone":   s.scope("openid phone", object{"phone_number": phone}),
		"oidcc-scope-all":     s.scope(allScopes, joinedObjects(profile, object{"email": "ann@example.com", "address": address, "phone_number": phone})),
		"oidcc-alternate-happy-flow": func(t *testing.T) {
			v := s.query(first, url.Values{"scope": {"email profile openid"}})
			var parts []string
			for _, name := range []string{"state", "scope", "response_mode", "nonce", "redirect_uri", "client_id", "response_type"} {
				if v.Has(name) {
					parts = append(parts, url.Values{name: v[name]}.Encode())
				}
			}
			_, _, response := s.open(t, first, "/oauth2/authorize?"+strings.Join(parts, "&"))
			s.finish(t, first, response)
		},
		"oidcc-display-page":  s.showsSignIn(url.Values{"display": {"page"}}),
		"oidcc-display-popup": s.showsSignIn(url.Values{"display": {"popup"}}),
		"oidcc-prompt-login": func(t *testing.T) {
			aged(t)
			_, before := s.flow(t, nil)
			fresh(t, before, url.Values{"prompt": {"login"}})
		},
		"oidcc-prompt-none-not-logged-in": func(t *testing.T) {
			_, _, response := s.visit(t, s.signedOut(), url.Values{"prompt": {"none"}})
			equal(t, "refused", []any{response.Get("error"), response.Get("state"), response.Has("code")}, []any{"login_required", "a b&c=", false})
		},
		"oidcc-prompt-none-logged-in": again(nil, url.Values{"prompt": {"none"}}),
		"oidcc-max-age-1": func(t *testing.T) {
			aged(t)
			_, before := s.flow(t, nil)
			fresh(t, before, url.Values{"max_age": {"1"}})
		},
		"oidcc-max-age-10000": again(url.Values{"max_age": {"15000"}}, url.Values{"max_age": {"10000"}}),
		"oidcc-ensure-request-with-unknown-parameter-succeeds": s.succeeds(url.Values{"extra": {"foobar"}}),
		"oidcc-id-token-hint": func(t *testing.T) {
			tokens, before := s.flow(t, nil)
			_, after := s.flow(t, url.Values{"prompt": {"none"}, "id_token_hint": {tokens["id_token"].(string)}})
			equal(t, "the same sign-in", []any{after["sub"], after["auth_time"]}, []any{before["sub"], before["auth_time"]})
		},
		"oidcc-login-hint":     s.showsSignIn(url.Values{"login_hint": {"buffy@" + c.host}}),
		"oidcc-ui-locales":     s.showsSignIn(url.Values{"ui_locales": {"se"}}),
		"oidcc-claims-locales": s.succeeds(url.Values{"claims_locales": {"se"}}),
		"oidcc-ensure-request-with-acr-values-succeeds": func(t *testing.T) {
			values := ""
			for _, value := range discovery["acr_values_supported"].([]any) {
				values += " " + value.(string)
			}
			_, claims := s.flow(t, url.Values{"acr_values": {strings.TrimSpace(values)}})
			equal(t, "acr is one of them", offers("acr_values_supported", claims["acr"].(string))(discovery), true)
		},
		"oidcc-codereuse":                      reuse(0),
		"oidcc-codereuse-30seconds":            reuse(30 * time.Second),
		"oidcc-ensure-registered-redirect-uri": s.refusedPage(url.Values{"redirect_uri": {"https://app.example.com/other"}}),
		"oidcc-ensure-post-request-succeeds": func(t *testing.T) {
			// From another site a browser sends no cookie.
			a := first.send(t, "POST", "/oauth2/authorize", http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, []byte(s.query(first, nil).Encode()))
			equal(t, "status", a.status, 303)
			first.keep(t, a)
			_, _, response := s.open(t, first, a.header.Get("Location"))
			s.finish(t, first, response)
		},
		"oidcc-server-client-secret-post": func(t *testing.T) {
			app := newParty(t, c, object{"name": "Post", "require_pkce": false, "token_endpoint_auth_method": "client_secret_post"})
			app.session = first.session
			_, _, response := s.visit(t, app, nil)
			a := app.form(t, nil, url.Values{"grant_type": {"authorization_code"}, "client_id": {app.id}, "client_secret": {app.secret}, "code": {s.code(t, response)}, "redirect_uri": {callback}})
			equal(t, "status", a.status, 200)
			verifiedIDToken(t, c, app.id, a.body["id_token"].(string))
		},
		"oidcc-request-uri-unsigned-supported-correctly-or-rejected-as-unsupported": func(t *testing.T) {
			// A client of the suite that is registered by hand has no request_uris.
			equal(t, "registration", has("require_request_uri_registration")(discovery), true)
			s.errorOf("request_uri_not_supported", url.Values{"request_uri": {"https://app.example.com/request.jwt"}})(t)
		},
		"oidcc-unsigned-request-object-supported-correctly-or-rejected-as-unsupported": func(t *testing.T) {
			equal(t, "without a signature", offers("request_object_signing_alg_values_supported", "none")(discovery), false)
			s.errorOf("request_not_supported", url.Values{"request": {unsecured(t, object{"iss": first.id, "aud": c.base(), "nonce": "n-2"})}})(t)
		},
		"oidcc-claims-essential": func(t *testing.T) {
			tokens, _ := s.flow(t, url.Values{"scope": {"openid"}, "claims": {`{"userinfo":{"name":{"essential":true}}}`}})
			equal(t, "name", s.userInfo(t, tokens)["name"], any("Ann"))
			equal(t, "offered", has("claims_parameter_supported")(discovery), true)
		},
		"oidcc-ensure-request-object-with-redirect-uri": func(t *testing.T) {
			s.errorOf("request_not_supported", url.Values{"request": {unsecured(t, object{"iss": first.id, "aud": c.base(), "redirect_uri": "https://app.example.com/other"})}})(t)
		},
		"oidcc-refresh-token": func(t *testing.T) {
			tokens, before := s.flow(t, url.Values{"scope": {"openid offline_access"}})
			form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {tokens["refresh_token"].(string)}}
			a := second.form(t, basic(second.id, second.secret), form)
			equal(t, "another client", []any{a.status, a.code()}, []any{400, "invalid_grant"})
			a = first.form(t, basic(first.id, first.secret), form)
			equal(t, "status", a.status, 200)
			after := verifiedIDToken(t, c, first.id, a.body["id_token"].(string))
			equal(t, "ID token", []any{after["sub"], after["auth_time"], after["iss"]}, []any{before["sub"], before["auth_time"], before["iss"]})
			equal(t, "user information", s.userInfo(t, a.body)["sub"], before["sub"])
		},
		"oidcc-ensure-request-with-valid-pkce-succeeds": func(t *testing.T) {
			_, _, response := s.visit(t, first, pkce())
			a := first.form(t, basic(first.id, first.secret), url.Values{"grant_type": {"authorization_code"}, "code": {s.code(t, response)}, "redirect_uri": {callback}, "code_verifier": {verifier}})
			equal(t, "status", a.status, 200)
		},
	}
}

// pkce are the parameters of PKCE.
func pkce() url.Values {
	return url.Values{"code_challenge": {challengeOf(verifier)}, "code_challenge_method": {"S256"}}
}

func joinedObjects(objects ...object) object {
	all := object{}
	for _, o := range objects {
		for name, value := range o {
			all[name] = value
		}
	}
	return all
}

// applicationID returns the id of the application of a client.
func (p *relyingParty) applicationID(t *testing.T, c *client) string {
	t.Helper()
	list := c.want(t, 200, "", "GET", appsPath+"?q="+p.id, nil).list()
	if len(list) != 1 {
		t.Fatalf("%d applications", len(list))
	}
	return list[0].(map[string]any)["id"].(string)
}
