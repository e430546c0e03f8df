package oauth_test

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"stonetown/oauth/access"
	"stonetown/oauth/authorization"
	"stonetown/oauth/client"
	"stonetown/oauth/grants"
	"stonetown/oauth/protocol"
	"stonetown/oauth/scope"
)

// website is an application that users can be sent to.
func (w *world) website() (app client.Application, secret string) {
	w.t.Helper()
	return w.application(tenantA, client.Application{Type: client.Server, RedirectURIs: []string{"https://app.example.com/cb", "http://127.0.0.1:4000/cb"}, AllowedScopes: append(slices.Clone(scope.OIDC), "resources:read")})
}

// Ports and queries of addresses on the machine itself count like all others.
func TestLoopbackRedirectsAreExact(t *testing.T) {
	w := newWorld(t)
	app, _ := w.website()
	for _, uri := range []string{
		"http://127.0.0.1:4001/cb", "http://127.0.0.1/cb", "http://127.0.0.1:4000/cb?x=1", "http://localhost:4000/cb", "http://[::1]:4000/cb", "http://127.0.0.1:4000/cb#x",
		"https://app.example.com/cb/", "https://app.example.com:443/cb", "https://APP.example.com/cb", "https://app.example.com/cb?x", "https://app.example.com/..;/cb", "https://app.example.com/%2e%2e/cb",
		"https://app.example.com/x/../cb", "https://app.example.com\\@evil.test/cb", "https://a@b@app.example.com/cb", "https://app.example.com/cb\n", "https://app.example.com\t/cb", "https://app.example.com.evil.test/cb",
		"https://[fe80::1%25eth0]/cb", "https://аpp.example.com/cb", "//app.example.com/cb", "app.example.com/cb", "javascript:alert(1)", "https://app.example.com/c%62",
	} {
		var page *authorization.PageError
		if _, _, err := w.Authorization.Authorize(t.Context(), tenantA, url.Values{"client_id": {app.ClientID}, "redirect_uri": {uri}}); !errors.As(err, &page) {
			t.Errorf("%q: %v", uri, err)
		}
	}
}

// A scope that is far too long is refused as it is, before it is taken apart.
func TestManyScopes(t *testing.T) {
	w := newWorld(t)
	app, secret := w.website()
	many := strings.Repeat("a ", 500_000)
	req := request(app, secret)
	req.Scope = many
	if _, err := w.Grants.Token(t.Context(), tenantA, req); err == nil || !strings.HasPrefix(err.Error(), "invalid_scope") {
		t.Errorf("token: %v", err)
	}
	_, _, err := w.Authorization.Authorize(t.Context(), tenantA, url.Values{
		"client_id": {app.ClientID}, "redirect_uri": {app.RedirectURIs[0]}, "response_type": {"code"}, "state": {"s"}, "scope": {many},
		"code_challenge": {strings.Repeat("x", 43)}, "code_challenge_method": {"S256"},
	})
	if err == nil || !strings.HasPrefix(err.Error(), "invalid_scope") {
		t.Errorf("authorize: %v", err)
	}
}

// An expired ID token of the application is accepted as a hint. One of another application is
// refused, expired or not.
func TestIDTokenHint(t *testing.T) {
	w := newWorld(t)
	hints := map[string]string{}
	var own client.Application
	for _, name := range []string{"another's", "its own"} {
		app, secret := w.website()
		own = app
		r := authorization.Request{ClientID: app.ClientID, RedirectURI: app.RedirectURIs[0], Scopes: scope.OIDC[:1], Challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", MaxAge: -1}
		code, err := w.Authorization.IssueCode(t.Context(), tenantA, r, access.Authentication{UserID: "usr_1", SessionID: "ses_1", Methods: []string{"pwd"}, AuthTime: w.clock.now})
		if err != nil {
			t.Fatal(err)
		}
		req := request(app, secret)
		req.GrantType, req.Scope, req.Code, req.RedirectURI, req.CodeVerifier = protocol.GrantAuthorizationCode, "", code, r.RedirectURI, "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
		tokens, err := w.Grants.Token(t.Context(), tenantA, req)
		if err != nil {
			t.Fatal(err)
		}
		hints[name] = tokens.IDToken
	}
	for _, later := range []time.Duration{0, 2 * time.Hour} {
		w.clock.now = w.clock.now.Add(later)
		for name, hint := range hints {
			r, _, err := w.Authorization.Authorize(t.Context(), tenantA, url.Values{
				"client_id": {own.ClientID}, "redirect_uri": {own.RedirectURIs[0]}, "response_type": {"code"}, "state": {"s"}, "scope": {"openid"}, "id_token_hint": {hint},
				"code_challenge": {strings.Repeat("x", 43)}, "code_challenge_method": {"S256"},
			})
			var refused *authorization.RedirectError
			if name == "its own" && (err != nil || r.UserID != "usr_1") || name != "its own" && (!errors.As(err, &refused) || refused.Code != string(protocol.InvalidRequest)) {
				t.Errorf("%s, %v later: %q, %v", name, later, r.UserID, err)
			}
			// Nor does it select a session to end.
			out, err := w.Authorization.Logout(t.Context(), tenantA, url.Values{"client_id": {own.ClientID}, "id_token_hint": {hint}})
			var page *authorization.PageError
			if name == "its own" && (err != nil || out.SessionID != "ses_1") || name != "its own" && !errors.As(err, &page) {
				t.Errorf("sign out by %s, %v later: %q, %v", name, later, out.SessionID, err)
			}
		}
	}
}

// FuzzAuthorize looks for a request that redirects to an address that the application has not
// registered, or is accepted although a rule forbids it.
func FuzzAuthorize(f *testing.F) {
	w := newWorld(f)
	app, _ := w.website()
	good := url.Values{
		"response_type": {"code"}, "client_id": {app.ClientID}, "redirect_uri": {app.RedirectURIs[0]}, "scope": {"openid resources:read"}, "state": {"s"}, "nonce": {"n"},
		"code_challenge": {strings.Repeat("x", 43)}, "code_challenge_method": {"S256"}, "max_age": {"10"}, "prompt": {"login consent"}, "acr_values": {"aal2"},
	}
	if _, _, err := w.Authorization.Authorize(f.Context(), tenantA, good); err != nil {
		f.Fatal(err)
	}
	for _, change := range []string{"", "&state=2", "&redirect_uri=https://evil.test", "&client_id=x", "&request=x", "&request_uri=urn:ietf:params:oauth:request_uri:x", "&id_token_hint=x", "&response_mode=form_post", "&max_age=-1", "&prompt=none+login", "&dpop_jkt=x", "&%00=%ff"} {
		f.Add(good.Encode() + change)
	}
	f.Fuzz(func(t *testing.T, query string) {
		params, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		r, got, err := w.Authorization.Authorize(t.Context(), tenantA, params)
		var page *authorization.PageError
		var to *authorization.RedirectError
		switch {
		case errors.As(err, &page):
		case errors.As(err, &to):
			if !slices.Contains(app.RedirectURIs, to.RedirectURI) || to.State != "" && !slices.Equal(params["state"], []string{to.State}) {
				t.Errorf("%q leads to %+v", query, to)
			}
		case err != nil:
			t.Errorf("%q: %v", query, err)
		case got.ClientID != app.ClientID || !slices.Contains(app.RedirectURIs, r.RedirectURI) || len(r.Challenge) != 43 || r.State == "" || len(r.Scopes) == 0 || len(scope.Intersect(r.Scopes, app.AllowedScopes)) != len(r.Scopes):
			t.Errorf("%q is accepted as %+v", query, r)
		}
	})
}

// FuzzToken: whatever is asked of the token endpoint, without the secret there is no token,
// and with it none that the application may not have.
func FuzzToken(f *testing.F) {
	w := newWorld(f)
	app, secret := w.website()
	for _, grantType := range append(protocol.GrantTypes, "refresh", "password", "") {
		f.Add(grantType, secret, "openid", "ac_x", "https://app.example.com/cb", strings.Repeat("x", 43), "rt_x", "", "x", protocol.TypeAccessToken)
	}
	f.Add(protocol.GrantClientCredentials, "cs_wrong", "resources:read", "", "", "", "", "https://a.example.com", "", "")
	f.Fuzz(func(t *testing.T, grantType, offered, name, code, redirectURI, verifier, refresh, audience, subject, subjectType string) {
		req := grants.Request{
			GrantType: grantType, Credentials: client.Credentials{ClientID: app.ClientID, ClientSecret: offered, ClientAuthMethods: []client.AuthMethod{client.ClientSecretPost}},
			Scope: name, Code: code, RedirectURI: redirectURI, CodeVerifier: verifier, RefreshToken: refresh, DeviceCode: code,
			Exchange: grants.TokenExchange{SubjectToken: subject, SubjectTokenType: subjectType, ActorToken: code, ActorTokenType: redirectURI},
		}
		if audience != "" {
			req.Audience = []string{audience}
		}
		got, err := w.Grants.Token(context.WithoutCancel(t.Context()), tenantA, req)
		var refused *protocol.Error
		switch {
		case errors.As(err, &refused):
		case err != nil:
			t.Errorf("%+v: %v", req, err)
		case offered != secret || grantType != protocol.GrantClientCredentials || len(scope.Intersect(strings.Fields(got.Scope), app.AllowedScopes)) != len(strings.Fields(got.Scope)):
			t.Errorf("%+v leads to %+v", req, got)
		}
	})
}
