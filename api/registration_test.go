package api_test

import (
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"stonetown/oauth/dpop/dpoptest"
)

const registerPath = "/oauth2/register"

// allowRegistration enables registration for a tenant.
func allowRegistration(t *testing.T, c *client) {
	t.Helper()
	c.want(t, 200, "", "PATCH", settingsPath, object{"dcr_mode": "initial_access_token"})
}

// registered is a client that has registered itself.
type registered struct {
	*client            // with its registration access token
	path        string // of its management
	information object // the last response
}

// register registers a client with an initial access token.
func register(t *testing.T, c *client, metadata object) *registered {
	t.Helper()
	a := c.want(t, 201, "", "POST", registerPath, metadata)
	equal(t, "headers", []any{a.header.Get("Cache-Control"), a.header.Get("Pragma")}, []any{"no-store", "no-cache"})
	return (&registered{client: c, information: a.body}).told(t)
}

// told stores the last client information response.
func (r *registered) told(t *testing.T) *registered {
	t.Helper()
	token := r.information["registration_access_token"].(string)
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(token, "rat_"))
	if err != nil || len(raw) != 32 || !strings.HasPrefix(token, "rat_") {
		t.Fatalf("registration_access_token is %q", token)
	}
	uri := r.information["registration_client_uri"].(string)
	base := "https://" + r.host
	if uri != base+registerPath+"/"+r.information["client_id"].(string) {
		t.Errorf("registration_client_uri is %q", uri)
	}
	r.client, r.path = r.with(token), strings.TrimPrefix(uri, base)
	return r
}

// put updates the client.
func (r *registered) put(t *testing.T, changes object) *registered {
	t.Helper()
	a := r.want(t, 200, "", "PUT", r.path, r.saying(changes))
	return (&registered{client: r.client, information: a.body}).told(t)
}

// saying returns the client's metadata with changes; nil removes a member.
func (r *registered) saying(changes object) object {
	said := maps.Clone(r.information)
	maps.Copy(said, changes)
	maps.DeleteFunc(said, func(_ string, value any) bool { return value == nil })
	return said
}

// party returns the client with the browser of a user.
func (r *registered) party(session string) *relyingParty {
	secret, _ := r.information["client_secret"].(string)
	return &relyingParty{client: r.with(""), id: r.information["client_id"].(string), secret: secret, session: session}
}

// application returns the client as administrators read it.
func (r *registered) application(t *testing.T, c *client) object {
	t.Helper()
	for _, item := range c.want(t, 200, "", "GET", appsPath+"?q="+r.information["client_id"].(string), nil).list() {
		return c.want(t, 200, "", "GET", appsPath+"/"+item.(object)["id"].(string), nil).data()
	}
	t.Fatal("the application is not listed")
	return nil
}

// registrationMode registers clients only while the tenant enables it.
func registrationMode(t *testing.T, w *world, c *client) {
	endpoint := func() any {
		t.Helper()
		both := []any{}
		for _, document := range []string{"openid-configuration", "oauth-authorization-server"} {
			both = append(both, c.with("").want(t, 200, "", "GET", "/.well-known/"+document, nil).body["registration_endpoint"])
		}
		equal(t, "the documents", both[0], both[1])
		return both[0]
	}
	absent := func(path string) {
		t.Helper()
		for _, as := range []*client{c, c.with(""), c.with("rat_x")} {
			as.want(t, 404, "not_found", "POST", registerPath, object{"redirect_uris": []any{callback}})
			for _, method := range []string{"GET", "PUT", "DELETE"} {
				as.want(t, 404, "not_found", method, path, object{})
			}
		}
	}
	absent(registerPath + "/x")
	equal(t, "off", endpoint(), nil)
	allowRegistration(t, c)
	equal(t, "on", endpoint(), c.base()+"/oauth2/register")
	r := register(t, c, object{"redirect_uris": []any{callback}})
	c.want(t, 200, "", "PATCH", settingsPath, object{"dcr_mode": nil})
	absent(r.path)
	equal(t, "off again", endpoint(), nil)
	allowRegistration(t, c)
	r.want(t, 200, "", "GET", r.path, nil)

	// Callers that may register.
	form := object{"redirect_uris": []any{callback}}
	a := c.with("").want(t, 401, "unauthenticated", "POST", registerPath, form)
	equal(t, "challenge", a.header.Get("WWW-Authenticate"), `Bearer realm="`+c.base()+`", resource_metadata="`+c.base()+`/.well-known/oauth-protected-resource"`)
	other := w.tenant(t, "registration-mode-other")
	for what, token := range map[string]string{"garbage": "x", "another tenant's": other.token, "a registration access token": r.token} {
		a := c.with(token).want(t, 401, "invalid_token", "POST", registerPath, form)
		if !strings.Contains(a.header.Get("WWW-Authenticate"), `error="invalid_token"`) {
			t.Errorf("%s: %s", what, a.header.Get("WWW-Authenticate"))
		}
	}
	reader := c.with(w.token(t, c, w.application(t, c, "applications:read")))
	a = reader.want(t, 403, "insufficient_scope", "POST", registerPath, form)
	equal(t, "required", a.details()["required_scope"], "applications:write")
	key := dpoptest.NewKey(t)
	app := w.application(t, c, "applications:write")
	bound := c.form(t, http.Header{"Dpop": {key.Proof(t, "POST", "https://"+c.host+"/oauth2/token", "", nil)}}, credentials(app.id, app.secret))
	proving := c.with(bound.body["access_token"].(string)).proving(key)
	proving.want(t, 201, "", "POST", registerPath, form)
	proof := key.Proof(t, "GET", "https://"+c.host+registerPath, proving.token, nil)
	a = proving.send(t, "POST", registerPath, http.Header{"Dpop": {proof}, "Content-Type": {"application/json"}}, []byte(`{}`))
	equal(t, "a proof for something else", []any{a.status, a.code()}, []any{401, "invalid_dpop_proof"})

	// Clients of another tenant are not found.
	allowRegistration(t, other)
	theirs := register(t, other, form)
	(&client{server: c.server, host: c.host, token: theirs.token}).want(t, 401, "invalid_token", "GET", theirs.path, nil)
	theirs.want(t, 200, "", "GET", theirs.path, nil)
}

// registration stores the permitted metadata and answers it as stored.
func registration(t *testing.T, w *world, c *client) {
	allowRegistration(t, c)
	c.want(t, 201, "", "POST", "/api/v1/scopes", object{"name": "invoices", "description": "Read your invoices", "entitlement": "self"})
	c.want(t, 201, "", "POST", "/api/v1/scopes", object{"name": "audits", "description": "Read audits", "entitlement": "group"})
	seen := len(w.events(t, c, 0))
	told := func(r *registered, want object) {
		t.Helper()
		got := maps.Clone(r.information)
		for _, name := range []string{"client_id", "client_id_issued_at", "client_secret", "client_secret_expires_at", "registration_access_token", "registration_client_uri"} {
			delete(got, name)
		}
		equal(t, "told", got, want)
		again := maps.Clone(r.want(t, 200, "", "GET", r.path, nil).body)
		for _, name := range []string{"client_secret", "client_secret_expires_at"} {
			if _, ok := again[name]; ok {
				t.Errorf("%s is told again", name)
			}
			again[name] = r.information[name]
		}
		maps.DeleteFunc(again, func(_ string, value any) bool { return value == nil })
		equal(t, "told again", again, r.information)
	}

	// The minimum.
	little := object{
		"redirect_uris": []any{callback}, "token_endpoint_auth_method": "client_secret_basic", "grant_types": []any{"authorization_code"},
		"response_types": []any{"code"}, "application_type": "web", "scope": "openid profile email offline_access", "client_name": "app.example.com",
		"id_token_signed_response_alg": "RS256", "backchannel_logout_session_required": false, "frontchannel_logout_session_required": false, "require_pushed_authorization_requests": false, "dpop_bound_access_tokens": false, "require_signed_request_object": false,
		"authorization_signed_response_alg": "RS256", "introspection_signed_response_alg": "RS256",
	}
	plain := register(t, c, object{"redirect_uris": []any{callback}, "jwks": nil, "contacts": nil})
	equal(t, "secret", []any{strings.HasPrefix(plain.information["client_secret"].(string), "cs_"), plain.information["client_secret_expires_at"]}, []any{true, 0.0})
	told(plain, little)

	// All members, and members that a client cannot set.
	key := newSigner(t, "a")
	all := object{
		"redirect_uris": []any{callback, "https://app.example.com/other"}, "token_endpoint_auth_method": "private_key_jwt", "grant_types": []any{"authorization_code", "refresh_token", deviceGrant},
		"response_types": []any{"code"}, "application_type": "web", "scope": "openid invoices", "client_name": "Notes", "client_uri": "https://app.example.com/", "logo_uri": "https://app.example.com/logo.png",
		"tos_uri": "https://app.example.com/tos", "policy_uri": "https://app.example.com/policy", "contacts": []any{"ops@app.example.com", "+41 1 234"}, "software_id": "4NRB1-0XZAB", "software_version": "2.0",
		"jwks": keySet(key), "id_token_signed_response_alg": "ES256", "post_logout_redirect_uris": []any{"https://app.example.com/bye"},
		"backchannel_logout_uri": "https://app.example.com/logout", "backchannel_logout_session_required": true, "frontchannel_logout_uri": "https://app.example.com/frames", "frontchannel_logout_session_required": true, "require_auth_time": true, "initiate_login_uri": "https://app.example.com/start",
		"require_pushed_authorization_requests": true, "dpop_bound_access_tokens": true, "request_object_signing_alg": "ES256", "require_signed_request_object": true,
		"userinfo_signed_response_alg": "EdDSA", "token_endpoint_auth_signing_alg": "ES256", "request_uris": []any{"https://app.example.com/r", "https://app.example.com/r#x"},
		"authorization_signed_response_alg": "ES256", "introspection_signed_response_alg": "ES256",
		"default_max_age": 3600.0,
	}
	forged := object{
		"first_party": true, "introspect_all": true, "token_exchange": object{"enabled": true, "allowed_audiences": []any{"https://api.example.com"}}, "group_scopes": "all", "audience": "https://api.example.com",
		"require_pkce": false, "allowed_scopes": []any{"users:read"}, "id": "app_x", "client_id": "client_x", "client_secret": "cs_x", "tenant_id": "tnt_x", "state": "disabled", "access_token_ttl_s": 86400,
		"type": "m2m", "scope": "openid invoices audits users:read me:read applications:write unknown", "allowed_origins": []any{"https://evil.test"}, "registration_access_token": "rat_x",
		"client_name#de": "Notizen", "x": object{"y": 1},
	}
	said := maps.Clone(all)
	maps.Copy(said, forged)
	full := register(t, c, said)
	told(full, all)
	equal(t, "secret", []any{full.information["client_secret"], full.information["client_id"] == "client_x"}, []any{nil, false})
	app := full.application(t, c)
	restricted := object{
		"dynamically_registered": true, "first_party": false, "introspect_all": false, "group_scopes": "allowed_only", "audience": nil, "require_pkce": true, "type": "server", "state": "enabled",
		"allowed_scopes": []any{"openid", "invoices"}, "allowed_origins": []any{}, "access_token_ttl_s": 3600.0, "refresh_token_ttl_s": 2592000.0,
		"token_exchange": object{"enabled": false, "allowed_audiences": []any{}, "require_client_authentication": true, "act_as": object{"enabled": false, "allowed_subject_types": []any{"user"}}, "subject_tokens": "any"},
		"grant_types":    []any{"authorization_code", "refresh_token", deviceGrant}, "name": "Notes", "dpop_bound_access_tokens": true,
	}
	is := func(app, want object) {
		t.Helper()
		for name, value := range want {
			equal(t, name, app[name], value)
		}
	}
	is(app, restricted)
	own := c.want(t, 201, "", "POST", appsPath, object{"name": "Own", "type": "spa", "dynamically_registered": true}).data()
	equal(t, "one that was set up", own["dynamically_registered"], false)
	for _, item := range c.want(t, 200, "", "GET", appsPath, nil).list() {
		d := item.(object)
		equal(t, "list", d["dynamically_registered"], d["client_id"] == full.information["client_id"] || d["client_id"] == plain.information["client_id"])
	}

	// The type follows from the authentication method.
	page := register(t, c, object{"redirect_uris": []any{"https://app.example.com/cb", "http://localhost:3000/cb"}, "token_endpoint_auth_method": "none", "client_name": "Page"})
	equal(t, "page", []any{page.information["client_secret"], page.information["grant_types"], page.information["application_type"]}, []any{nil, []any{"authorization_code"}, "web"})
	is(page.application(t, c), object{"type": "spa", "allowed_origins": []any{"https://app.example.com", "http://localhost:3000"}})
	phone := register(t, c, object{"redirect_uris": []any{"com.example.app:/cb"}, "token_endpoint_auth_method": "none", "application_type": "native"})
	is(phone.information, object{"application_type": "native", "client_name": "com.example.app", "client_secret": nil})
	is(phone.application(t, c), object{"type": "native", "allowed_origins": []any{}})
	device := register(t, c, object{"grant_types": []any{deviceGrant}, "token_endpoint_auth_method": "none", "application_type": "native"})
	is(device.information, object{"redirect_uris": []any{}, "client_name": "Application"})
	post := register(t, c, object{"redirect_uris": []any{callback}, "token_endpoint_auth_method": "client_secret_post", "response_types": []any{"code"}, "scope": "users:read"})
	equal(t, "nothing is left", post.information["scope"], "")

	// Members that ask for what the product does anyway.
	register(t, c, object{"redirect_uris": []any{callback}, "subject_type": "public", "id_token_encrypted_response_alg": nil, "tls_client_certificate_bound_access_tokens": false})

	// Events and their actors.
	found := w.events(t, c, seen)
	var created []string
	for _, e := range found {
		if string(e.Type) == "application.created" && strings.Contains(string(e.Data), `"dynamically_registered":true`) {
			created = append(created, string(e.Data))
			if e.Origin.Actor.Type != "application" || e.Origin.Actor.ID == "" || e.Origin.ClientIP != "127.0.0.1" {
				t.Errorf("origin %+v", e.Origin)
			}
		}
		for _, prefix := range []string{"cs_", "rat_"} {
			if strings.Contains(string(e.Data), prefix) {
				t.Errorf("%s tells a secret", e.Type)
			}
		}
	}
	equal(t, "events", len(created), 7)
	token := plain.information["registration_access_token"].(string)
	sum := sha256.Sum256([]byte(token))
	var options string
	if err := w.db.QueryRow(t.Context(), `SELECT options FROM applications WHERE client_id = $1`, plain.information["client_id"]).Scan(&options); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(options, token) || !strings.Contains(options, base64.RawURLEncoding.EncodeToString(sum[:])) || strings.Contains(w.log.String(), token) {
		t.Errorf("the token is kept: %s", options)
	}
}

// registrationRefuses answers invalid metadata with the error codes of RFC 7591, at registration
// and at updates.
func registrationRefuses(t *testing.T, _ *world, c *client) {
	allowRegistration(t, c)
	good := object{"redirect_uris": []any{callback}}
	r := register(t, c, good)
	phone := register(t, c, object{"redirect_uris": []any{"com.example.app:/cb"}, "token_endpoint_auth_method": "none", "application_type": "native"})
	refused := func(what, code string, changes object) {
		t.Helper()
		form := maps.Clone(good)
		maps.Copy(form, changes)
		maps.DeleteFunc(form, func(_ string, value any) bool { return value == nil })
		for _, a := range []answer{c.do(t, "POST", registerPath, form), r.do(t, "PUT", r.path, r.saying(changes))} {
			if a.status != 400 || a.code() != code || a.body["error_description"] == "" {
				t.Errorf("%s: %d %s, want %s", what, a.status, a.text, code)
			}
		}
	}
	for what, uri := range map[string]any{
		"fragment": "https://app.example.com/#x", "script": "javascript:alert(1)", "wildcard": "https://*.example.com/cb", "wildcard in the path": "https://app.example.com/*", "data": "data:text/html,x",
		"relative": "/cb", "userinfo": "https://ann@app.example.com/", "plain": "http://app.example.com/cb", "of a program": "com.example.app:/cb", "control": "https://app.example.com/\tx", "dots": "https://app.example.com/a/../b",
		"backslash": `https://app.example.com\@evil.test/`, "empty": "", "null": nil, "long": "https://app.example.com/" + long(2048), "custom": "myapp://cb",
	} {
		refused(what, "invalid_redirect_uri", object{"redirect_uris": []any{callback, uri}})
	}
	refused("none", "invalid_redirect_uri", object{"redirect_uris": nil})
	refused("an empty list", "invalid_redirect_uri", object{"redirect_uris": []any{}})
	refused("none for the code", "invalid_redirect_uri", object{"redirect_uris": []any{}, "grant_types": []any{"authorization_code", deviceGrant}})
	refused("post logout", "invalid_redirect_uri", object{"post_logout_redirect_uris": []any{"javascript:x"}})
	refused("a statement", "invalid_software_statement", object{"software_statement": "eyJhbGciOiJub25lIn0.e30."})
	deep := any("x")
	for range 40 {
		deep = []any{deep}
	}
	many := func(n int, text string) []any { return slices.Repeat([]any{text}, n) }
	for what, changes := range map[string]object{
		"no list": {"redirect_uris": callback}, "many": {"redirect_uris": many(51, callback)}, "no text": {"client_name": 1},
		"auth method": {"token_endpoint_auth_method": "client_secret_jwt"}, "empty method": {"token_endpoint_auth_method": "tls_client_auth"}, "keys": {"token_endpoint_auth_method": "private_key_jwt"},
		"both keys": {"jwks": keySet(newSigner(t, "a")), "jwks_uri": "https://app.example.com/keys"}, "bad keys": {"jwks": object{"keys": []any{}}}, "keys that are none": {"jwks": "x"},
		"implicit": {"grant_types": []any{"authorization_code", "implicit"}}, "password": {"grant_types": []any{"password"}}, "machine": {"grant_types": []any{"authorization_code", "client_credentials"}},
		"exchange": {"grant_types": []any{"authorization_code", exchangeGrant}}, "token": {"response_types": []any{"code", "token"}}, "id token": {"response_types": []any{"code id_token"}},
		"pairwise": {"subject_type": "pairwise"}, "encrypted ID tokens": {"id_token_encrypted_response_alg": "RSA-OAEP"}, "unsigned responses": {"userinfo_signed_response_alg": "none"}, "assertions": {"token_endpoint_auth_signing_alg": "HS256"}, "request URIs": {"request_uris": []any{"http://user@app.example.com/r"}}, "many request URIs": {"request_uris": many(21, "https://app.example.com/r")}, "long request URI": {"request_uris": []any{"https://app.example.com/" + long(513)}},
		"unsigned request objects": {"request_object_signing_alg": "none"}, "encrypted request objects": {"request_object_encryption_alg": "RSA-OAEP"}, "no keys": {"require_signed_request_object": true}, "certificates": {"tls_client_certificate_bound_access_tokens": true}, "levels": {"default_acr_values": []any{"aal2"}},
		"negative max_age": {"default_max_age": -1}, "max_age is a text": {"default_max_age": "60"}, "long max_age": {"default_max_age": 1 << 31},
		"kind": {"application_type": "mobile"}, "alg none": {"id_token_signed_response_alg": "none"}, "alg HS256": {"id_token_signed_response_alg": "HS256"},
		"scope": {"scope": "open\"id"}, "long scope": {"scope": long(20_000)}, "name": {"client_name": long(501)}, "NUL": {"software_id": "\x00"}, "contacts": {"contacts": many(21, "a")}, "a contact": {"contacts": []any{long(501)}},
		"logo": {"logo_uri": "javascript:alert(1)"}, "plain logo": {"logo_uri": "http://app.example.com/l"}, "terms": {"tos_uri": "x"}, "flag": {"dpop_bound_access_tokens": "yes"},
		"deep": {"x": []any{deep}}, "large": {"x": long(70_000)},
	} {
		refused(what, "invalid_client_metadata", changes)
	}
	for _, body := range []string{``, `{`, `[]`, `"x"`, `{"redirect_uris":["https://app.example.com/cb"],"redirect_uris":["https://app.example.com/cb"]}`, `{} {}`} {
		c.want(t, 400, "invalid_client_metadata", "POST", registerPath, body)
		r.want(t, 400, "invalid_client_metadata", "PUT", r.path, body)
	}
	form := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	equal(t, "a form", c.send(t, "POST", registerPath, form, []byte("x=y")).code(), "invalid_request")
	equal(t, "a form", r.send(t, "PUT", r.path, form, []byte("x=y")).code(), "invalid_request")

	// Members that an update must repeat and cannot change.
	for what, changes := range map[string]object{
		"no client_id": {"client_id": nil}, "another client_id": {"client_id": phone.information["client_id"]}, "a wrong secret": {"client_secret": "cs_x"},
		"another type": {"token_endpoint_auth_method": "none"},
	} {
		a := r.want(t, 400, "invalid_client_metadata", "PUT", r.path, r.saying(changes))
		equal(t, what, a.header.Get("Cache-Control"), "no-store")
	}
	for _, changes := range []object{{"token_endpoint_auth_method": "client_secret_basic"}, {"application_type": "web"}, {"client_secret": "cs_x"}} {
		phone.want(t, 400, "invalid_client_metadata", "PUT", phone.path, phone.saying(with(changes, object{"redirect_uris": []any{callback}})))
	}
	// Nothing has changed.
	equal(t, "still", r.want(t, 200, "", "GET", r.path, nil).body["client_name"], "app.example.com")
}

// clientChanges updates the metadata of a client; all else stays.
func clientChanges(t *testing.T, w *world, c *client) {
	allowRegistration(t, c)
	c.want(t, 201, "", "POST", "/api/v1/scopes", object{"name": "audits", "description": "Read audits", "entitlement": "group"})
	c.want(t, 201, "", "POST", "/api/v1/scopes", object{"name": "invoices", "description": "Read invoices", "entitlement": "self"})
	r := register(t, c, object{"redirect_uris": []any{callback}, "client_name": "Notes", "contacts": []any{"a"}, "software_id": "x", "dpop_bound_access_tokens": true})
	seen := len(w.events(t, c, 0))
	secret := r.information["client_secret"]

	// An update replaces all metadata and the token; absent members get their defaults, except
	// requirements, which an administrator may have set.
	now := r.put(t, object{"client_name": "Other notes", "contacts": nil, "software_id": nil, "dpop_bound_access_tokens": nil, "scope": "invoices audits openid"})
	is := func(app, want object) {
		t.Helper()
		for name, value := range want {
			equal(t, name, app[name], value)
		}
	}
	is(now.information, object{"client_name": "Other notes", "contacts": nil, "software_id": nil, "dpop_bound_access_tokens": true, "scope": "invoices openid", "client_secret": nil, "client_id": r.information["client_id"], "client_id_issued_at": r.information["client_id_issued_at"]})
	a := r.want(t, 401, "invalid_token", "GET", r.path, nil)
	equal(t, "challenge", a.header.Get("WWW-Authenticate"), `Bearer realm="`+c.base()+`", error="invalid_token"`)
	r.want(t, 401, "invalid_token", "PUT", r.path, r.saying(nil))
	r.want(t, 401, "invalid_token", "DELETE", r.path, nil)
	equal(t, "GET rotates nothing", now.want(t, 200, "", "GET", now.path, nil).body["registration_access_token"], now.token)
	now = now.put(t, object{"client_secret": secret}) // which may be there if it is right
	found := w.events(t, c, seen)
	equal(t, "events", len(found), 1) // what leaves all as it is, is none
	equal(t, "event", []any{string(found[0].Type), found[0].Origin.Actor.Type, found[0].Origin.Actor.ID}, []any{"application.updated", "application", r.information["client_id"]})
	changes := parse(t, string(found[0].Data)).(object)["changes"].(object)
	equal(t, "changes", []any{changes["name"], len(changes)}, []any{[]any{"Notes", "Other notes"}, 2})

	// The client can neither gain nor remove what an administrator has set.
	app := now.application(t, c)
	equal(t, "who", app["audit_summary"].(object)["last_change_by"], r.information["client_id"])
	path := appsPath + "/" + app["id"].(string)
	decided := object{
		"first_party": true, "introspect_all": true, "group_scopes": "all", "audience": "https://api.example.com", "allowed_scopes": []any{"openid", "audits"}, "allowed_origins": []any{"https://admin.example.com"},
		"access_token_ttl_s": 600.0, "require_pkce": false, "description": "checked", "tags": []any{"checked"},
		"token_exchange": object{"enabled": true, "allowed_audiences": []any{"https://api.example.com"}, "require_client_authentication": true, "act_as": object{"enabled": false, "allowed_subject_types": []any{"user"}}, "subject_tokens": "any"},
	}
	c.want(t, 200, "", "PATCH", path, decided)
	now = now.put(t, object{
		"scope": "openid audits users:read", "first_party": false, "introspect_all": false, "group_scopes": "allowed_only", "audience": nil, "require_pkce": true, "token_exchange": object{"enabled": false},
		"access_token_ttl_s": 60, "state": "disabled", "allowed_origins": []any{}, "id": "app_x", "client_name": "Notes",
	})
	equal(t, "kept if it is asked for", now.information["scope"], "openid audits")
	is(now.application(t, c), with(decided, object{"name": "Notes", "state": "enabled", "id": app["id"], "dynamically_registered": true}))
	now = now.put(t, object{"scope": "openid"})
	equal(t, "and gone if not", now.put(t, object{"scope": "openid audits"}).information["scope"], "openid")

	// The client replaces its secret by keys and returns to a new secret.
	r = register(t, c, object{"redirect_uris": []any{callback}})
	key := newSigner(t, "a")
	signs := r.put(t, object{"token_endpoint_auth_method": "private_key_jwt", "jwks": keySet(key)})
	equal(t, "no secret", []any{signs.information["client_secret"], signs.information["client_secret_expires_at"], signs.application(t, c)["can_rotate_secret"]}, []any{nil, nil, false})
	again := signs.put(t, object{"token_endpoint_auth_method": "client_secret_post", "jwks": nil})
	equal(t, "a secret", []any{strings.HasPrefix(again.information["client_secret"].(string), "cs_"), again.information["client_secret"] == r.information["client_secret"], again.information["client_secret_expires_at"]}, []any{true, false, 0.0})
	ask := func(secret any) any {
		t.Helper()
		return c.form(t, nil, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {"x"}, "client_id": {r.information["client_id"].(string)}, "client_secret": {secret.(string)}}).code()
	}
	equal(t, "the old one", ask(r.information["client_secret"]), "invalid_client")
	equal(t, "the new one", ask(again.information["client_secret"]), "unauthorized_client") // it has not asked for refresh tokens
	again.want(t, 400, "invalid_client_metadata", "PUT", again.path, again.saying(object{"client_secret": r.information["client_secret"]}))

	// The origins of a browser client follow its redirect URIs; those of an administrator stay.
	page := register(t, c, object{"redirect_uris": []any{"https://one.example.com/cb"}, "token_endpoint_auth_method": "none"})
	path = appsPath + "/" + page.application(t, c)["id"].(string)
	c.want(t, 200, "", "PATCH", path, object{"allowed_origins": []any{"https://one.example.com", "https://admin.example.com"}})
	page = page.put(t, object{"redirect_uris": []any{"https://two.example.com/cb", "https://two.example.com/cb2"}, "token_endpoint_auth_method": nil, "application_type": nil})
	equal(t, "still a page", page.information["token_endpoint_auth_method"], "none")
	equal(t, "origins", page.application(t, c)["allowed_origins"], []any{"https://two.example.com", "https://admin.example.com"})
	phone := register(t, c, object{"redirect_uris": []any{"com.example.app:/cb"}, "token_endpoint_auth_method": "none", "application_type": "native"})
	equal(t, "still a program", phone.put(t, object{"token_endpoint_auth_method": nil, "application_type": nil}).information["application_type"], "native")

	// Management requires the client's own registration access token.
	own := c.want(t, 201, "", "POST", appsPath, object{"name": "Own", "type": "server"}).data()["client_id"].(string)
	for what, as := range map[string]*client{"nothing": c.with(""), "an administrator": c, "another client": page.client, "garbage": c.with("rat_x"), "its hash": c.with(hashOf(again.token))} {
		for _, path := range []string{registerPath + "/" + own, again.path, registerPath + "/nobody", registerPath + "/%00"} {
			for _, method := range []string{"GET", "PUT", "DELETE"} {
				if a := as.do(t, method, path, object{"client_id": own}); a.status != 401 || a.code() != "invalid_token" {
					t.Errorf("%s: %s %s: %d %s", what, method, path, a.status, a.text)
				}
			}
		}
	}
	basically := again.send(t, "GET", again.path, basic(again.information["client_id"].(string), again.information["client_secret"].(string)), nil)
	equal(t, "its secret", basically.code(), "invalid_token")

	// A disabled client cannot manage itself.
	path = appsPath + "/" + again.application(t, c)["id"].(string)
	c.want(t, 200, "", "POST", path+"/disable", nil)
	again.want(t, 403, "unauthorized_client", "GET", again.path, nil)
	again.want(t, 403, "unauthorized_client", "PUT", again.path, again.saying(nil))
	again.want(t, 403, "unauthorized_client", "DELETE", again.path, nil)
	c.want(t, 200, "", "POST", path+"/enable", nil)
	again.want(t, 200, "", "GET", again.path, nil)
	c.want(t, 204, "", "DELETE", path, nil)
	again.want(t, 401, "invalid_token", "GET", again.path, nil)
}

func hashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// registeredClient gets tokens of users who consent, until it is deleted.
func registeredClient(t *testing.T, w *world, c *client) {
	w.ahead.Store(0) // both clocks count here
	allowRegistration(t, c)
	c.want(t, 201, "", "POST", "/api/v1/scopes", object{"name": "invoices", "description": "Read your invoices", "entitlement": "self"})
	id := member(t, c, "ann@example.com")
	g := group(t, c, "readers", "users:read")
	c.want(t, 201, "", "POST", groupsPath+"/"+g+"/members", object{"user_id": id})
	session := signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	user := c.with(session)
	consents := func(p *relyingParty, scope string) answer {
		t.Helper()
		a, to := p.ask(t, url.Values{"scope": {scope}})
		if a.status != 302 || to.Path != "/auth/consent" {
			t.Fatalf("the user is not asked: %d to %s", a.status, to)
		}
		_, to = p.browse(t, user.want(t, 200, "", "POST", authPath+"/consent", object{"flow_id": p.flow, "decision": "allow"}).data()["redirect_to"].(string))
		return p.exchange(t, to.Query().Get("code"), nil)
	}
	// A client can use the grants that it asked for, and no others.
	coded := register(t, c, object{"redirect_uris": []any{callback}, "default_max_age": 0})
	p := coded.party(session)
	_, to := p.ask(t, url.Values{"scope": {"openid"}, "max_age": {"86400"}})
	equal(t, "consent", to.Path, "/auth/consent")
	_, to = p.browse(t, user.want(t, 200, "", "POST", authPath+"/consent", object{"flow_id": p.flow, "decision": "allow"}).data()["redirect_to"].(string))
	got := p.exchange(t, to.Query().Get("code"), nil)
	equal(t, "no refresh token", []any{got.status, got.body["refresh_token"]}, []any{200, nil})
	equal(t, "refresh", p.refresh(t, "x", nil).code(), "unauthorized_client")
	equal(t, "device", p.present(t, "/oauth2/device_authorization", basic(p.id, p.secret), nil).code(), "unauthorized_client")
	time.Sleep(1100 * time.Millisecond)
	_, to = p.ask(t, url.Values{"scope": {"openid"}, "prompt": {"none"}})
	equal(t, "its default_max_age", to.Query().Get("error"), "login_required")
	coded.want(t, 204, "", "DELETE", coded.path, nil)
	tv := register(t, c, object{"grant_types": []any{deviceGrant}, "redirect_uris": []any{callback}}).party(session)
	_, to = tv.ask(t, nil)
	equal(t, "codes", to.Query().Get("error"), "unauthorized_client")

	for what, metadata := range map[string]object{
		"server": {"redirect_uris": []any{callback}, "client_name": "Notes", "scope": "openid offline_access invoices", "grant_types": []any{"authorization_code", "refresh_token"}},
		"page":   {"redirect_uris": []any{callback}, "client_name": "Notes", "scope": "openid offline_access invoices", "grant_types": []any{"authorization_code", "refresh_token"}, "token_endpoint_auth_method": "none"},
	} {
		r := register(t, c, metadata)
		p := r.party(session)
		got := consents(p, "openid offline_access invoices users:read")
		// It cannot have the scopes of groups.
		equal(t, what, []any{got.status, got.body["scope"], claimsOf(t, got.body["id_token"].(string))["sub"]}, []any{200, "openid offline_access invoices", id})
		token := c.with(got.body["access_token"].(string))
		token.want(t, 200, "", "GET", "/oauth2/userinfo", nil)
		renewed := p.refresh(t, got.body["refresh_token"].(string), nil)
		equal(t, "refresh", renewed.status, 200)
		equal(t, "listed", user.want(t, 200, "", "GET", authorizationsPath, nil).list()[0].(object)["name"], "Notes")
		equal(t, "for itself", c.form(t, nil, url.Values{"grant_type": {"client_credentials"}, "client_id": {p.id}, "client_secret": {p.secret}}).code(), "unauthorized_client")

		// A registered client can be deleted with active sessions, which end.
		path := appsPath + "/" + r.application(t, c)["id"].(string)
		c.want(t, 409, "application_has_active_sessions", "DELETE", path, nil)
		seen := len(w.events(t, c, 0))
		a := r.want(t, 204, "", "DELETE", r.path, nil)
		equal(t, "headers", a.header.Get("Cache-Control"), "no-store")
		token.want(t, 401, "invalid_token", "GET", "/oauth2/userinfo", nil)
		equal(t, "refresh", p.refresh(t, renewed.body["refresh_token"].(string), nil).code(), "invalid_client")
		refused, _ := p.ask(t, nil)
		equal(t, "authorize", refused.status, 400)
		c.want(t, 404, "application_not_found", "GET", path, nil)
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			r.want(t, 401, "invalid_token", method, r.path, r.saying(nil))
		}
		equal(t, "listed", user.want(t, 200, "", "GET", authorizationsPath, nil).list(), []any{})
		found := w.events(t, c, seen)
		equal(t, "event", []any{len(found), string(found[0].Type), found[0].Origin.Actor.ID}, []any{1, "application.deleted", p.id})
		var left int
		if err := w.db.QueryRow(t.Context(), `SELECT COUNT(*) FROM grants WHERE client_id = $1 AND revoked_at = 0`, p.id).Scan(&left); err != nil || left != 0 {
			t.Errorf("%d grants are left, %v", left, err)
		}
	}
}

// registeredWithoutPKCE lets confidential clients do without PKCE that send a nonce, where the tenant
// permits it.
func registeredWithoutPKCE(t *testing.T, w *world, c *client) {
	w.ahead.Store(0) // both clocks count here
	allowRegistration(t, c)
	member(t, c, "ann@example.com")
	session := signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	asks := func(p *relyingParty, changes url.Values) string {
		t.Helper()
		_, to := p.ask(t, joined(plain, changes))
		return to.Path + to.Query().Get("error")
	}
	refused := "/cbinvalid_request"
	before := register(t, c, object{"redirect_uris": []any{callback}}).party(session)
	equal(t, "by default", asks(before, nil), refused)
	c.want(t, 200, "", "PATCH", settingsPath, object{"dcr_require_pkce": false})
	equal(t, "registered before", asks(before, nil), refused)
	r := register(t, c, object{"redirect_uris": []any{callback}})
	p := r.party(session)
	equal(t, "with a nonce", asks(p, nil), "/auth/consent")
	equal(t, "without a nonce", asks(p, url.Values{"nonce": nil}), refused)
	public := register(t, c, object{"redirect_uris": []any{callback}, "token_endpoint_auth_method": "none"}).party(session)
	equal(t, "a public client", asks(public, nil), refused)
	c.want(t, 200, "", "PATCH", settingsPath, object{"dcr_require_pkce": nil})
	equal(t, "a setting of the application", asks(p, nil), "/auth/consent")
	c.want(t, 200, "", "PATCH", appsPath+"/"+p.applicationID(t, c), object{"require_pkce": true})
	equal(t, "required again", asks(p, nil), refused)
	r.put(t, object{"redirect_uris": []any{callback}, "client_name": "Another"})
	equal(t, "an update changes nothing", asks(p, nil), refused)
}
