package api_test

import (
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"

	oauthclient "stonetown/oauth/client"
)

func tokenEndpoint(t *testing.T, w *world, c *client) {
	app := w.application(t, c, "resources:read", "resources:write")
	post := url.Values{"grant_type": {"client_credentials"}, "client_id": {app.id}, "client_secret": {app.secret}}
	with := func(changes url.Values) url.Values {
		v := maps.Clone(post)
		maps.Copy(v, changes)
		return v
	}
	issued := func(a answer) {
		t.Helper()
		if a.status != 200 || a.body["token_type"] != "Bearer" || a.body["expires_in"].(float64) <= 0 || a.body["refresh_token"] != nil {
			t.Fatalf("%d %s", a.status, a.text)
		}
		equal(t, "Cache-Control", a.header.Get("Cache-Control"), "no-store")
		equal(t, "Pragma", a.header.Get("Pragma"), "no-cache")
		c.with(a.body["access_token"].(string)).want(t, 200, "", "GET", "/api/v1/resource-types", nil)
	}
	all := c.form(t, nil, post)
	issued(all)
	equal(t, "scope", all.body["scope"], "resources:read resources:write")
	narrow := c.form(t, basic(app.id, app.secret), url.Values{"grant_type": {"client_credentials"}, "scope": {"resources:read"}})
	issued(narrow)
	equal(t, "scope", narrow.body["scope"], "resources:read")
	c.with(narrow.body["access_token"].(string)).want(t, 403, "insufficient_scope", "POST", "/api/v1/resource-types", body)
	issued(c.form(t, basic(app.id, app.secret), url.Values{"grant_type": {"client_credentials"}, "client_id": {app.id}}))
	issued(c.form(t, nil, with(url.Values{"scope": {""}, "unknown": {"x"}, "audience": {c.base()}})))

	public := w.newApplication(t, c, oauthclient.Application{Name: "page", Type: oauthclient.SPA})
	other := w.tenant(t, "token-endpoint-other")
	foreign := w.application(t, other, "resources:read")

	for name, tc := range map[string]struct {
		status int
		code   string
		header http.Header
		form   url.Values
	}{
		"no grant":             {400, "invalid_request", nil, with(url.Values{"grant_type": nil})},
		"unknown grant":        {400, "unsupported_grant_type", nil, with(url.Values{"grant_type": {"password"}})},
		"nothing":              {400, "invalid_request", nil, url.Values{}},
		"no client":            {401, "invalid_client", nil, url.Values{"grant_type": {"client_credentials"}}},
		"wrong secret":         {401, "invalid_client", nil, with(url.Values{"client_secret": {app.secret + "x"}})},
		"no secret":            {401, "invalid_client", nil, with(url.Values{"client_secret": nil})},
		"wrong client":         {401, "invalid_client", nil, with(url.Values{"client_id": {"nobody"}})},
		"another tenant's":     {401, "invalid_client", nil, with(url.Values{"client_id": {foreign.id}, "client_secret": {foreign.secret}})},
		"Basic, wrong secret":  {401, "invalid_client", basic(app.id, "x"), with(url.Values{"client_secret": nil})},
		"Basic, garbage":       {401, "invalid_client", http.Header{"Authorization": {"Basic %%%"}}, with(url.Values{"client_secret": nil})},
		"Basic, bad escape":    {401, "invalid_client", http.Header{"Authorization": {"Basic JXp6Onh4"}}, with(url.Values{"client_secret": nil})},
		"Basic, NUL":           {401, "invalid_client", basic("\x00", "x"), with(url.Values{"client_id": nil, "client_secret": nil})},
		"Bearer":               {401, "invalid_client", http.Header{"Authorization": {"Bearer x"}}, with(url.Values{"client_secret": nil})},
		"both":                 {400, "invalid_request", basic(app.id, app.secret), post},
		"another in the body":  {400, "invalid_request", basic(app.id, app.secret), with(url.Values{"client_id": {"x"}, "client_secret": nil})},
		"two headers":          {400, "invalid_request", http.Header{"Authorization": {"Basic eDp5", "Basic eDp5"}}, with(url.Values{"client_secret": nil})},
		"repeated parameter":   {400, "invalid_request", nil, with(url.Values{"scope": {"resources:read", "resources:read"}})},
		"repeated grant":       {400, "invalid_request", nil, with(url.Values{"grant_type": {"client_credentials", "client_credentials"}})},
		"NUL":                  {400, "invalid_request", nil, with(url.Values{"client_id": {"\x00"}})},
		"broken UTF-8":         {400, "invalid_request", nil, with(url.Values{"client_id": {"\xff"}})},
		"unknown scope":        {400, "invalid_scope", nil, with(url.Values{"scope": {"resources:read nothing"}})},
		"scope not allowed":    {400, "invalid_scope", nil, with(url.Values{"scope": {"users:read"}})},
		"audience not allowed": {400, "invalid_target", nil, with(url.Values{"audience": {"https://elsewhere.test"}})},
		"two audiences":        {400, "invalid_target", nil, with(url.Values{"audience": {"https://a.test", "https://b.test"}})},
		"public client":        {400, "unauthorized_client", nil, url.Values{"grant_type": {"client_credentials"}, "client_id": {public.id}}},
		"too large":            {400, "invalid_request", nil, with(url.Values{"x": {long(100_000)}})},
	} {
		t.Run(name, func(t *testing.T) {
			a := c.form(t, tc.header, tc.form)
			if a.status != tc.status || a.code() != tc.code {
				t.Fatalf("%d %s, want %d %s", a.status, a.text, tc.status, tc.code)
			}
			equal(t, "Pragma", a.header.Get("Pragma"), "no-cache")
			if tc.status == 401 && !strings.HasPrefix(a.header.Get("WWW-Authenticate"), `Basic realm="`+c.base()+`"`) {
				t.Errorf("challenge: %q", a.header.Get("WWW-Authenticate"))
			}
		})
	}
	raw := func(target, mediaType, text string) answer {
		t.Helper()
		return c.with("").send(t, "POST", target, http.Header{"Content-Type": {mediaType}}, []byte(text))
	}
	equal(t, "a secret in the URL", raw("/oauth2/token?"+post.Encode(), "application/x-www-form-urlencoded", "").code(), "invalid_request")
	equal(t, "JSON", raw("/oauth2/token", "application/json", `{"grant_type":"client_credentials"}`).code(), "invalid_request")
	equal(t, "a broken form", raw("/oauth2/token", "application/x-www-form-urlencoded", "grant_type=%zz").code(), "invalid_request")
	stranger := &client{server: c.server, host: "nobody.test"}
	equal(t, "an unknown host", stranger.form(t, nil, post).code(), "tenant_not_found")
	if log := w.log.String(); strings.Contains(log, app.secret) || strings.Contains(log, c.token) {
		t.Error("a secret was logged")
	}
}

func discovery(t *testing.T, _ *world, c *client) {
	c = c.with("")
	keys := c.want(t, 200, "", "GET", "/.well-known/jwks.json", nil)
	for _, member := range []string{`"d"`, `"p"`, `"q"`, `"dp"`, `"k"`} {
		if strings.Contains(keys.text, member) {
			t.Errorf("a private member %s is published", member)
		}
	}
	equal(t, "Cache-Control", keys.header.Get("Cache-Control"), "public, max-age=900")
	equal(t, "CORS", keys.header.Get("Access-Control-Allow-Origin"), "*")
	moved := c.want(t, 308, "", "GET", "/oauth2/jwks", nil)
	equal(t, "Location", moved.header.Get("Location"), "/.well-known/jwks.json")

	oidc := c.want(t, 200, "", "GET", "/.well-known/openid-configuration", nil)
	rfc8414 := c.want(t, 200, "", "GET", "/.well-known/oauth-authorization-server", nil)
	equal(t, "the two documents", oidc.text, rfc8414.text)
	equal(t, "issuer", oidc.body["issuer"], c.base())
	equal(t, "algorithms of proofs", oidc.body["dpop_signing_alg_values_supported"], []any{"ES256", "RS256", "PS256", "EdDSA"})
	resource := c.want(t, 200, "", "GET", "/.well-known/oauth-protected-resource", nil)
	equal(t, "resource", []any{resource.body["resource"], resource.body["authorization_servers"], resource.body["scopes_supported"].([]any)[0]}, []any{c.base(), []any{c.base()}, "me:read"})
	equal(t, "CORS", resource.header.Get("Access-Control-Allow-Origin"), "*")
	// All endpoints in the document exist.
	for member, value := range oidc.body {
		target, ok := strings.CutPrefix(toString(value), c.base()+"/")
		if !ok || target == "" {
			continue
		}
		if a := c.do(t, "GET", "/"+target, nil); a.status == 404 {
			t.Errorf("%s leads to nothing", member)
		}
	}
	yaml := c.want(t, 200, "", "GET", "/api/v1/openapi.yaml", nil)
	asJSON := c.want(t, 200, "", "GET", "/api/v1/openapi.json", nil)
	equal(t, "version", asJSON.body["openapi"], "3.1.1")
	if !strings.Contains(yaml.text, "openapi: 3.1.1") {
		t.Errorf("not the document: %.100s", yaml.text)
	}
	for _, target := range []string{
		"/.well-known/jwks.json", "/.well-known/openid-configuration", "/.well-known/oauth-authorization-server", "/.well-known/oauth-protected-resource",
		"/.well-known/authzen-configuration", "/api/v1/openapi.yaml", "/api/v1/openapi.json", "/api/v1/collection.json",
	} {
		tag := c.want(t, 200, "", "GET", target, nil).header.Get("ETag")
		for _, have := range []string{tag, `"x", W/` + tag, "*"} {
			a := c.send(t, "GET", target, http.Header{"If-None-Match": {have}}, nil)
			equal(t, target+" with If-None-Match", a.status, 304)
			equal(t, target+" with If-None-Match", a.text, "")
		}
		equal(t, "another tag", c.send(t, "GET", target, http.Header{"If-None-Match": {`"x"`}}, nil).status, 200)
	}
}

func toString(v any) string {
	s, _ := v.(string)
	return s
}
