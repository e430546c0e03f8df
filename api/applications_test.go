package api_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"stonetown/internal/sqldb"
	"stonetown/server"
)

const appsPath = "/api/v1/applications"

func applicationLife(t *testing.T, w *world, c *client) {
	created := c.want(t, 201, "", "POST", appsPath, object{
		"name": "Reports", "type": "server", "description": "What they read", "redirect_uris": []any{"https://reports.example.com/cb"},
		"allowed_origins": []any{"https://reports.example.com"}, "allowed_scopes": []any{"resources:read", "openid"}, "audience": "https://reports.example.com",
		"access_token_ttl_s": 600, "refresh_token_ttl_s": 3600, "tags": []any{"b", "a c"}, "access_token_signing_alg": "RS256",
	})
	d := created.data()
	id, secret := d["id"].(string), d["client_secret"].(string)
	equal(t, "location", created.header.Get("Location"), appsPath+"/"+id)
	equal(t, "created", []any{d["state"], d["tags"], d["allowed_scopes"], d["access_token_ttl_s"], d["refresh_token_ttl_s"], d["audience"], d["grant_types"], d["can_rotate_secret"]},
		[]any{"enabled", []any{"b", "a c"}, []any{"resources:read", "openid"}, 600.0, 3600.0, "https://reports.example.com", []any{"authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code", "client_credentials"}, true})
	app := appsPath + "/" + id
	got := c.want(t, 200, "", "GET", app, nil).data()
	equal(t, "the secret again", got["client_secret"], nil)
	delete(d, "client_secret")
	equal(t, "read", got, d)
	ask := func(secret string) int {
		t.Helper()
		return c.form(t, nil, url.Values{"grant_type": {"client_credentials"}, "client_id": {d["client_id"].(string)}, "client_secret": {secret}, "scope": {"resources:read"}}).status
	}
	equal(t, "token", ask(secret), 200)
	used := c.want(t, 200, "", "GET", app, nil).data()["audit_summary"].(map[string]any)
	if used["last_used_at"] == nil || !strings.HasPrefix(fmt.Sprint(used["last_change_by"]), "client_") {
		t.Errorf("audit_summary: %v", used)
	}

	// A change keeps absent members; null restores the default.
	p := c.want(t, 200, "", "PATCH", app, object{"name": "All reports", "audience": nil, "access_token_ttl_s": nil, "tags": nil, "allowed_scopes": nil, "access_token_signing_alg": nil}).data()
	equal(t, "patched", []any{p["name"], p["audience"], p["access_token_ttl_s"], p["tags"], p["allowed_scopes"], p["access_token_signing_alg"], p["description"], p["redirect_uris"]},
		[]any{"All reports", nil, 3600.0, []any{}, []any{"openid", "profile", "email", "offline_access", "me:read", "me:write"}, "ES256", "What they read", []any{"https://reports.example.com/cb"}})
	c.want(t, 200, "", "PATCH", app, object{"allowed_scopes": []any{"resources:read"}})
	for _, member := range []string{"id", "client_id", "type", "created_at"} {
		equal(t, member, c.want(t, 400, "immutable_field", "PATCH", app, object{member: d[member]}).details()["fields"], []any{member})
	}

	// A rotated secret stays valid for a while. There are at most two secrets.
	rotated := c.want(t, 200, "", "POST", app+"/rotate-secret", object{}).data()
	second := rotated["client_secret"].(string)
	equal(t, "both", []any{ask(secret), ask(second)}, []any{200, 200})
	third := c.want(t, 200, "", "POST", app+"/rotate-secret", object{"previous_ttl_s": 0}).data()["client_secret"].(string)
	equal(t, "one", []any{ask(secret), ask(second), ask(third)}, []any{401, 401, 200})
	c.want(t, 400, "validation_failed", "POST", app+"/rotate-secret", object{"previous_ttl_s": 604801})
	c.want(t, 400, "invalid_json", "POST", app+"/rotate-secret", `{`)
	page := c.want(t, 201, "", "POST", appsPath, object{"name": "Page", "type": "spa"}).data()
	equal(t, "page", []any{page["client_secret"], page["can_rotate_secret"], page["grant_types"]}, []any{nil, false, []any{"authorization_code", "refresh_token"}})
	c.want(t, 400, "not_applicable", "POST", appsPath+"/"+page["id"].(string)+"/rotate-secret", object{})

	// A disabled application gets no tokens.
	equal(t, "state", c.want(t, 200, "", "POST", app+"/disable", nil).data()["state"], "disabled")
	equal(t, "again", c.want(t, 200, "", "POST", app+"/disable", nil).data()["can_disable"], false)
	equal(t, "token", ask(third), 400)
	c.want(t, 200, "", "POST", app+"/enable", nil)
	equal(t, "token", ask(third), 200)
	c.want(t, 204, "", "DELETE", app, nil)
	equal(t, "token", ask(third), 401)
	for method, path := range map[string]string{"GET": app, "PATCH": app, "DELETE": app} {
		c.want(t, 404, "application_not_found", method, path, object{})
	}
	for _, verb := range []string{"disable", "enable", "rotate-secret"} {
		c.want(t, 404, "application_not_found", "POST", app+"/"+verb, object{})
	}
	equal(t, "events", w.types(t, c, "application."), []string{
		"application.created", // the client of the test
		"application.created", "application.updated", "application.updated", "application.secret_rotated", "application.secret_rotated", "application.created",
		"application.disabled", "application.enabled", "application.deleted",
	})
	for _, e := range w.events(t, c, 0) {
		if strings.Contains(string(e.Data), "cs_") {
			t.Errorf("%s tells a secret", e.Type)
		}
	}
	reader := c.with(w.token(t, c, w.application(t, c, "applications:read")))
	hints := reader.want(t, 200, "", "GET", appsPath+"/"+page["id"].(string), nil).data()
	equal(t, "hints", []any{hints["can_rotate_secret"], hints["can_disable"], hints["can_delete"]}, []any{false, false, false})
}

// applicationSetup reads options as they were written, and restores defaults with null.
func applicationSetup(t *testing.T, w *world, c *client) {
	defaults := object{
		"logo_uri": nil, "first_party": true, "token_endpoint_auth_method": "client_secret_basic", "jwks": nil, "jwks_uri": nil,
		"post_logout_redirect_uris": []any{}, "backchannel_logout_uri": nil, "backchannel_logout_session_required": false,
		"require_pushed_authorization_requests": false, "require_pkce": true, "dpop_bound_access_tokens": false,
		"id_token_signed_response_alg": "ES256", "group_scopes": "all", "introspect_all": false, "authorization_signed_response_alg": "ES256", "introspection_signed_response_alg": "ES256", "request_object_signing_alg": nil, "require_signed_request_object": false,
		"userinfo_signed_response_alg": nil, "token_endpoint_auth_signing_alg": nil, "request_uris": []any{},
	}
	said := object{
		"logo_uri": "https://example.com/logo.png", "first_party": false, "token_endpoint_auth_method": "client_secret_post",
		"post_logout_redirect_uris": []any{"https://example.com/bye"}, "backchannel_logout_uri": "https://example.com/logout", "backchannel_logout_session_required": true,
		"require_pushed_authorization_requests": true, "require_pkce": false, "dpop_bound_access_tokens": true,
		"id_token_signed_response_alg": "RS256", "group_scopes": "allowed_only", "introspect_all": true, "authorization_signed_response_alg": "PS256", "introspection_signed_response_alg": "EdDSA", "request_object_signing_alg": "PS256",
		"userinfo_signed_response_alg": "PS256", "token_endpoint_auth_signing_alg": "EdDSA", "request_uris": []any{"https://example.com/request.jwt#x"},
	}
	nulls := object{}
	created := object{"name": "x", "type": "server"}
	for name, value := range said {
		created[name], nulls[name] = value, nil
	}
	shows := func(a answer, want object) {
		t.Helper()
		for name, value := range want {
			equal(t, name, a.data()[name], value)
		}
	}
	shows(c.want(t, 201, "", "POST", appsPath, object{"name": "x", "type": "server"}), defaults)
	a := c.want(t, 201, "", "POST", appsPath, created)
	shows(a, said)
	path := appsPath + "/" + a.data()["id"].(string)
	shows(c.want(t, 200, "", "PATCH", path, object{"name": "y"}), said)
	shows(c.want(t, 200, "", "PATCH", path, nulls), defaults)

	// A SAML service provider.
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	certificate := certificateOf(t, key)
	saml := object{
		"entity_id": "https://sp.example.com/saml", "acs_url": "https://sp.example.com/acs", "acs_urls": []any{"https://sp.example.com/acs2"}, "slo_url": "https://sp.example.com/slo",
		"certificate": certificate, "name_id_format": "emailAddress", "sign_response": true, "sign_assertion": false, "encrypt_assertion": true,
		"want_authn_requests_signed": true, "allow_idp_initiated": true,
		"attribute_statements": []any{object{"name": "mail", "name_format": "basic", "value": "email"}, object{"name": "unit", "name_format": "unspecified", "value": "attributes.unit"}},
	}
	form := func(more object) object {
		f := object{"name": "x", "type": "saml"}
		for _, part := range []object{saml, more} {
			for name, value := range part {
				f[name] = value
			}
		}
		return f
	}
	a = c.want(t, 201, "", "POST", appsPath, form(nil))
	shows(a, saml)
	shows(a, object{
		"idp_entity_id": c.base() + "/saml/idp/metadata", "idp_metadata_url": c.base() + "/saml/idp/metadata",
		"idp_sso_url": c.base() + "/saml/idp/sso", "idp_slo_url": c.base() + "/saml/idp/slo",
	})
	equal(t, "the same entity id", fields(c.want(t, 400, "validation_failed", "POST", appsPath, form(nil))), []string{"entity_id"})
	equal(t, "secret", a.data()["client_secret"], nil)
	equal(t, "rotate", a.data()["can_rotate_secret"], false)
	path = appsPath + "/" + a.data()["id"].(string)
	c.want(t, 400, "not_applicable", "POST", path+"/rotate-secret", object{})
	shows(c.want(t, 200, "", "PATCH", path, object{"name_id_format": nil, "sign_assertion": nil, "attribute_statements": nil}), object{"name_id_format": "persistent", "sign_assertion": true, "attribute_statements": nil})
	equal(t, "list", len(c.want(t, 200, "", "GET", appsPath+"?type=saml", nil).list()), 1)
	for _, bad := range []object{
		{"entity_id": nil},
		{"entity_id": "a b"},
		{"acs_url": nil},
		{"acs_url": "http://sp.example.com/acs"},
		{"acs_urls": []any{""}},
		{"slo_url": "javascript:alert(1)"},
		{"certificate": "x"},
		{"certificate": selfSigned(t)}, // has no RSA key, which could decrypt
		{"certificate": nil},
		{"name_id_format": "x509"},
		{"sign_response": false},
		{"attribute_statements": "all"},
		{"attribute_statements": []any{object{"name": "", "value": "email"}}},
		{"attribute_statements": []any{object{"name": "a", "value": "password"}}},
		{"attribute_statements": []any{object{"name": "a", "value": "email", "name_format": "x"}}},
		{"attribute_statements": []any{object{"name": "a", "value": "attributes."}}},
	} {
		c.want(t, 400, "validation_failed", "POST", appsPath, form(bad))
	}
	client := url.Values{"grant_type": {"client_credentials"}, "client_id": {a.data()["client_id"].(string)}}
	equal(t, "token", c.form(t, nil, client).status, 401)
}

// selfSigned is a certificate in PEM.
func selfSigned(t testing.TB) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return certificateOf(t, key)
}

// certificateOf is a certificate of a key in PEM.
func certificateOf(t testing.TB, key crypto.Signer) string {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(1000 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func applicationForms(t *testing.T, _ *world, c *client) {
	form := func(more object) object {
		f := object{"name": "x", "type": "server"}
		for name, value := range more {
			f[name] = value
		}
		return f
	}
	uris := func(uri string) object { return object{"redirect_uris": []any{uri}} }
	id := c.want(t, 201, "", "POST", appsPath, form(nil)).data()["id"].(string)
	for field, bad := range map[string]object{
		"name": {"name": ""}, "type": {"type": "robot"}, "description": {"description": long(501)}, "audience": {"audience": "/relative"},
		"access_token_ttl_s": {"access_token_ttl_s": 59}, "refresh_token_ttl_s": {"refresh_token_ttl_s": 31536001}, "tags": {"tags": []any{""}},
		"allowed_origins": {"allowed_origins": []any{"https://*.example.com"}}, "access_token_signing_alg": {"access_token_signing_alg": "none"}, "redirect_uris": {"redirect_uris": "https://x"},
		"logo_uri": {"logo_uri": "javascript:alert(1)"}, "first_party": {"first_party": "yes"}, "token_endpoint_auth_method": {"token_endpoint_auth_method": "none"},
		"jwks": {"jwks": []any{}}, "jwks_uri": {"jwks_uri": "https://user@example.com/keys"}, "backchannel_logout_uri": {"backchannel_logout_uri": "https://user@example.com/"},
		"id_token_signed_response_alg": {"id_token_signed_response_alg": "none"}, "request_object_signing_alg": {"request_object_signing_alg": "none"}, "authorization_signed_response_alg": {"authorization_signed_response_alg": "none"}, "introspection_signed_response_alg": {"introspection_signed_response_alg": "HS256"}, "userinfo_signed_response_alg": {"userinfo_signed_response_alg": "none"}, "token_endpoint_auth_signing_alg": {"token_endpoint_auth_signing_alg": "HS256"}, "request_uris": {"request_uris": []any{"https://user@example.com/r"}}, "require_signed_request_object": {"require_signed_request_object": 1}, "group_scopes": {"group_scopes": "some"}, "introspect_all": {"introspect_all": 1},
		"post_logout_redirect_uris": {"post_logout_redirect_uris": "https://x"}, "require_pkce": {"require_pkce": []any{}},
	} {
		equal(t, field, fields(c.want(t, 400, "validation_failed", "POST", appsPath, form(bad))), []string{field})
		if field != "type" {
			equal(t, field, fields(c.want(t, 400, "validation_failed", "PATCH", appsPath+"/"+id, bad)), []string{field})
		}
	}
	for _, zero := range []object{{"access_token_ttl_s": 0}, {"refresh_token_ttl_s": 0}, {"access_token_ttl_s": -1}, {"access_token_ttl_s": 1.5}} {
		c.want(t, 400, "validation_failed", "POST", appsPath, form(zero))
	}
	for _, publics := range []object{{"introspect_all": true}, {"require_pkce": false}, {"token_endpoint_auth_method": "client_secret_basic"}} {
		publics["type"] = "spa"
		c.want(t, 400, "validation_failed", "POST", appsPath, form(publics))
	}
	for uri, code := range map[string]string{"http://example.com/": "redirect_uri_invalid", "https://example.com/#a": "redirect_uri_forbidden"} {
		for _, a := range []answer{c.want(t, 400, code, "POST", appsPath, form(uris(uri))), c.want(t, 400, code, "PATCH", appsPath+"/"+id, uris(uri))} {
			equal(t, "uri", a.details()["uri"], uri)
		}
	}
	for _, scope := range []string{"made:up", "a\x00b", ""} {
		equal(t, "scopes", c.want(t, 400, "scope_unknown", "POST", appsPath, form(object{"allowed_scopes": []any{scope, "users:read"}})).details()["scopes"], []any{scope})
	}
	c.want(t, 400, "scope_unknown", "PATCH", appsPath+"/"+id, object{"allowed_scopes": []any{"made:up"}})
	c.want(t, 400, "scope_unknown", "POST", appsPath, object{"name": "x", "type": "m2m", "allowed_scopes": []any{"openid"}})
	c.want(t, 400, "invalid_json", "POST", appsPath, `{`)
	c.want(t, 400, "invalid_json", "PATCH", appsPath+"/"+id, `{`)
	c.want(t, 404, "application_not_found", "GET", appsPath+"/%00", nil)

	// Lists.
	var ids []any
	for i := range 5 {
		typ := []string{"spa", "native"}[i%2]
		ids = append(ids, c.want(t, 201, "", "POST", appsPath, object{"name": fmt.Sprint("listed ", i), "type": typ, "description": fmt.Sprintf("Grün_%% nr%d!", i)}).data()["id"])
	}
	list := func(query string) (names []string) {
		for cursor := ""; ; {
			a := c.want(t, 200, "", "GET", appsPath+"?limit=2&"+query+cursor, nil)
			for _, item := range a.list() {
				names = append(names, item.(map[string]any)["name"].(string))
			}
			next, _ := a.meta("next_cursor").(string)
			if next == "" {
				return names
			}
			cursor = "&cursor=" + next
		}
	}
	equal(t, "newest first", list("q=listed"), []string{"listed 4", "listed 3", "listed 2", "listed 1", "listed 0"})
	equal(t, "type", list("type=native"), []string{"listed 3", "listed 1"})
	equal(t, "words", list("q="+url.QueryEscape("GRÜN_% NR2!")), []string{"listed 2"})
	equal(t, "client id", len(list("q=client_")), 7) // and the one of this client itself
	for _, bad := range []string{"type=robot", "state=gone", "limit=0", "limit=x", "limit=1&limit=2", "q=" + long(201), "q=%00"} {
		c.want(t, 400, "validation_failed", "GET", appsPath+"?"+bad, nil)
	}
	c.want(t, 400, "cursor_invalid", "GET", appsPath+"?cursor=x", nil)

	// A bulk request reports each item.
	bulk := func(verb string, ids ...any) []any {
		t.Helper()
		var statuses []any
		for _, item := range c.want(t, 200, "", "POST", appsPath+"/bulk/"+verb, object{"ids": ids}).list() {
			statuses = append(statuses, item.(map[string]any)["status"])
		}
		return statuses
	}
	equal(t, "disabled", bulk("disable", ids[0], "nothing", ids[1], ids[0]), []any{"succeeded", "error", "succeeded"})
	equal(t, "list", list("state=disabled"), []string{"listed 1", "listed 0"})
	equal(t, "enabled", bulk("enable", ids[0], ids[2]), []any{"succeeded", "succeeded"})
	equal(t, "deleted", bulk("delete", ids[0], ids[0], ids[1]), []any{"succeeded", "succeeded"})
	equal(t, "deleted again", bulk("delete", ids[0]), []any{"error"})
	many := make([]any, 251)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	for _, verb := range []string{"disable", "enable", "delete"} {
		c.want(t, 400, "bulk_too_large", "POST", appsPath+"/bulk/"+verb, object{"ids": many})
		c.want(t, 400, "validation_failed", "POST", appsPath+"/bulk/"+verb, object{})
		c.want(t, 400, "invalid_json", "POST", appsPath+"/bulk/"+verb, `{`)
	}
}

// applicationScopeRace deletes a scope while an application is given it. One of the two fails.
func applicationScopeRace(t *testing.T, _ *world, c *client) {
	for i := range 10 {
		name := fmt.Sprintf("app-race:%d", i)
		c.want(t, 201, "", "POST", scopesPath, object{"name": name, "entitlement": "self"})
		var wg sync.WaitGroup
		var deleted, created answer
		wg.Go(func() { deleted = c.do(t, "DELETE", scopesPath+"/"+name, nil) })
		wg.Go(func() {
			created = c.do(t, "POST", appsPath, object{"name": "x", "type": "m2m", "allowed_scopes": []any{name}})
		})
		wg.Wait()
		switch {
		case deleted.status == 204 && created.code() == "scope_unknown":
		case deleted.code() == "scope_in_use" && created.status == 201:
		default:
			t.Errorf("deleting: %d %s; creating: %d %s", deleted.status, deleted.text, created.status, created.text)
		}
	}
}

// Redirect URIs under .localhost are accepted on a development server only.
func TestLocalRedirectURIs(t *testing.T) {
	const local = "http://shop.localhost:5173/callback"
	for _, dev := range []bool{false, true} {
		w := newWorldOn(t, sqldb.Config{URL: databases["SQLite"](t)}, nil, func(c *server.Config) { c.Dev = dev })
		c := w.tenant(t, "local")
		for field, uri := range map[string]string{"redirect_uris": local, "post_logout_redirect_uris": "http://shop.localhost:5173/"} {
			form := object{"name": "Shop", "type": "spa", field: []any{"http://localhost:5173/", uri}}
			if dev {
				c.want(t, 201, "", "POST", appsPath, form)
			} else {
				equal(t, field, c.want(t, 400, "redirect_uri_invalid", "POST", appsPath, form).details()["uri"], any(uri))
			}
		}
	}
}
