package api_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"stonetown/identity/federation"
)

const connectionsPath = "/api/v1/federation/connections"

// provider is the server of an identity provider.
type provider struct {
	*httptest.Server
	mu        sync.Mutex
	discovery object
	metadata  string
	requests  int
}

// newProvider starts a provider with a discovery document.
func newProvider(t testing.TB) *provider {
	t.Helper()
	p := new(provider)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.requests++
		switch {
		case r.URL.Path == "/.well-known/openid-configuration" && p.discovery != nil:
			_ = json.NewEncoder(w).Encode(p.discovery)
		case r.URL.Path == "/metadata" && p.metadata != "":
			fmt.Fprint(w, p.metadata)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(p.Close)
	p.discovery = object{
		"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys", "userinfo_endpoint": p.URL + "/userinfo",
		"id_token_signing_alg_values_supported": []any{"RS256", "HS256"}, "claims_supported": []any{"sub", "email", "email_verified", "roles"},
	}
	return p
}

// publish replaces the metadata; with an empty one the provider responds 404.
func (p *provider) publish(metadata string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.metadata = metadata
}

// discover changes a member of the discovery document.
func (p *provider) discover(name string, value any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.discovery = maps.Clone(p.discovery)
	p.discovery[name] = value
}

func (p *provider) requested() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests
}

// newCertificate returns a certificate that is valid until an instant, in base64.
func newCertificate(t testing.TB, until time.Time) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "idp"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: until}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(der)
}

// samlMetadata is the metadata of an identity provider with signing certificates.
func samlMetadata(entityID string, certificates ...string) string {
	var keys strings.Builder
	for _, c := range certificates {
		fmt.Fprintf(&keys, `<KeyDescriptor use="signing"><KeyInfo xmlns="http://www.w3.org/2000/09/xmldsig#"><X509Data><X509Certificate>%s</X509Certificate></X509Data></KeyInfo></KeyDescriptor>`, c)
	}
	return `<EntityDescriptor xmlns="urn:oasis:names:tc:SAML:2.0:metadata" entityID="` + entityID + `"><IDPSSODescriptor protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol">` + keys.String() +
		`<SingleLogoutService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect" Location="https://idp.example.com/slo"/>` +
		`<SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST" Location="https://idp.example.com/sso"/></IDPSSODescriptor></EntityDescriptor>`
}

// github is the request for a connection that nothing is fetched for.
func github(slug string, more object) object {
	return with(object{"kind": "social.github", "slug": slug, "name": "GitHub", "client_id": "id", "client_secret": "cs_kept"}, more)
}

// connect creates a connection and returns its path.
func connect(t testing.TB, c *client, form object) (path string, data object) {
	t.Helper()
	d := c.want(t, 201, "", "POST", connectionsPath, form).data()
	return connectionsPath + "/" + d["id"].(string), d
}

// connectionLife creates a connection, changes it in every way and deletes it.
func connectionLife(t *testing.T, w *world, c *client) {
	seen := len(w.events(t, c, 0))
	var at string
	happened := func(want ...string) { // the last with the connection as it is read
		t.Helper()
		var got []string
		var data string
		for _, e := range w.events(t, c, seen) {
			if strings.HasPrefix(string(e.Type), "federation.") {
				got, data = append(got, string(e.Type)), string(e.Data)
				if strings.Contains(string(e.Data), "kept") {
					t.Errorf("an event has a secret: %s", e.Data)
				}
			}
			seen++
		}
		equal(t, "events", got, want)
		if data != "" {
			equal(t, "data", parse(t, data).(object)["connection"], any(c.want(t, 200, "", "GET", at, nil).data()))
		}
	}
	staff := group(t, c, "staff", "users:read")
	form := github("code", object{
		"attribute_mapping": object{"name": "$.login", "attributes.id": "$.id"}, "group_mapping": []any{object{"value": "eng", "group_id": staff}}, "jit_provisioning": false,
		"link_policy": "never", "trust_email": true, "second_factor": "accept", "domains": []any{"example.com", "xn--bcher-kva.example"}, "scopes": []any{"user:email"},
	})
	created := c.under(t, "create", "POST", connectionsPath, form)
	again := c.under(t, "create", "POST", connectionsPath, form)
	if created.status != 201 || again.text != created.text || again.header.Get("Idempotent-Replayed") != "true" {
		t.Fatalf("%d %s, then %s", created.status, created.text, again.text)
	}
	d := created.data()
	at = connectionsPath + "/" + d["id"].(string)
	equal(t, "Location", created.header.Get("Location"), at)
	for name, value := range form {
		if name != "client_secret" {
			equal(t, name, d[name], value)
		}
	}
	equal(t, "client_secret_set", d["client_secret_set"], true)
	equal(t, "callback_url", d["callback_url"], c.base()+"/federation/code/callback")
	equal(t, "state", d["state"], "enabled")
	if strings.Contains(created.text, "kept") {
		t.Errorf("the response has the secret: %s", created.text)
	}
	equal(t, "read", c.want(t, 200, "", "GET", at, nil).data(), d)
	happened("federation.connection_created")

	// A merge patch: what is absent stays, null is the default.
	patched := c.want(t, 200, "", "PATCH", at, object{
		"name": "Code", "attribute_mapping": object{"name": nil, "email": "$.mail"}, "group_mapping": []any{}, "jit_provisioning": nil, "link_policy": nil,
		"trust_email": nil, "second_factor": nil, "domains": []any{"example.com", "EXAMPLE.org", "bücher.example"}, "scopes": nil,
	}).data()
	for name, want := range (object{
		"name": "Code", "attribute_mapping": object{"attributes.id": "$.id", "email": "$.mail"}, "group_mapping": []any{}, "jit_provisioning": true, "link_policy": "verified_email",
		"trust_email": false, "second_factor": "ask", "domains": []any{"example.com", "example.org", "xn--bcher-kva.example"}, "scopes": []any{"read:user", "user:email"}, "client_id": "id", "client_secret_set": true,
	}) {
		equal(t, "patched "+name, patched[name], want)
	}
	happened("federation.connection_updated")
	c.want(t, 200, "", "PATCH", at, object{"name": "Code"})
	happened()
	c.want(t, 200, "", "PATCH", at, object{"client_secret": "another kept one"})
	happened("federation.connection_updated")
	c.want(t, 200, "", "PATCH", at, object{"attribute_mapping": nil})
	equal(t, "without mapping", c.want(t, 200, "", "GET", at, nil).data()["attribute_mapping"], object{})
	happened("federation.connection_updated")

	equal(t, "disabled", c.want(t, 200, "", "POST", at+"/disable", nil).data()["state"], "disabled")
	c.want(t, 200, "", "POST", at+"/disable", nil)
	equal(t, "enabled", c.want(t, 200, "", "POST", at+"/enable", nil).data()["state"], "enabled")
	happened("federation.connection_disabled", "federation.connection_enabled")

	// Lists.
	_, apple := connect(t, c, object{"kind": "social.apple", "slug": "apple", "name": "Apple", "client_id": "com.example", "team_id": "ABCDE12345", "key_id": "KEY1234567", "private_key": appleKey(t)})
	for name, want := range (object{"team_id": "ABCDE12345", "key_id": "KEY1234567", "private_key_set": true, "client_secret_set": false, "scopes": []any{"openid", "name", "email"}}) {
		equal(t, "apple "+name, apple[name], want)
	}
	_, microsoft := connect(t, c, object{"kind": "social.microsoft", "slug": "ms", "name": "Microsoft", "client_id": "id", "client_secret": "cs", "tenant": "organizations"})
	equal(t, "tenant", microsoft["tenant"], "organizations")
	connect(t, c, object{"kind": "social.google", "slug": "google", "name": "Google", "client_id": "id", "client_secret": "cs"})
	c.want(t, 200, "", "POST", at+"/disable", nil)
	slugs := func(query string) (list []string, next any) {
		t.Helper()
		a := c.want(t, 200, "", "GET", connectionsPath+query, nil)
		for _, item := range a.list() {
			list = append(list, item.(object)["slug"].(string))
		}
		return list, a.meta("next_cursor")
	}
	for query, want := range map[string][]string{
		"": {"google", "ms", "apple", "code"}, "?kind=social.apple&kind=social.github": {"apple", "code"}, "?state=disabled": {"code"}, "?state=enabled&kind=social.google": {"google"}, "?kind=saml": nil,
	} {
		got, _ := slugs(query)
		equal(t, query, got, want)
	}
	first, next := slugs("?limit=3")
	rest, end := slugs("?limit=3&cursor=" + next.(string))
	equal(t, "pages", append(first, rest...), []string{"google", "ms", "apple", "code"})
	equal(t, "the end", end, nil)
	c.want(t, 400, "cursor_invalid", "GET", connectionsPath+"?cursor="+next.(string)+"&state=enabled", nil)
	for _, query := range []string{"?state=gone", "?kind=ldap", "?limit=0", strings.Replace(strings.Repeat("&kind=saml", 21), "&", "?", 1)} {
		c.want(t, 400, "validation_failed", "GET", connectionsPath+query, nil)
	}

	c.want(t, 204, "", "DELETE", at, nil)
	for _, test := range [][2]string{{"GET", ""}, {"PATCH", ""}, {"DELETE", ""}, {"POST", "/enable"}, {"POST", "/disable"}} {
		c.want(t, 404, "connection_not_found", test[0], at+test[1], object{"name": "x"})
	}
	c.want(t, 404, "connection_not_found", "POST", at+"/mapping-preview", object{"claims": object{}})
	connect(t, c, github("code", object{"domains": []any{"example.com"}})) // both are free again
}

// appleKey is a private key as Apple issues them.
func appleKey(t testing.TB) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// connectionForms sends connections that are refused.
func connectionForms(t *testing.T, _ *world, c *client) {
	at, _ := connect(t, c, github("taken", object{"domains": []any{"taken.example"}}))
	p := newProvider(t)
	oidc := object{"kind": "oidc", "slug": "o", "name": "O", "client_id": "id", "issuer": p.URL}
	for name, tc := range map[string]struct {
		status int
		code   string
		form   any
		field  string
	}{
		"nothing":               {400, "validation_failed", object{}, "kind"},
		"a kind of no provider": {400, "kind_unsupported", object{"kind": "ldap", "slug": "x", "name": "X"}, ""},
		"a kind of number":      {400, "validation_failed", object{"kind": 7, "slug": "x", "name": "X"}, "kind"},
		"a slug with capitals":  {400, "slug_invalid", github("Code", nil), ""},
		"a long slug":           {400, "slug_invalid", github(long(64), nil), ""},
		"a reserved slug":       {400, "slug_invalid", github("callback", nil), ""},
		"a taken slug":          {409, "slug_unavailable", github("taken", nil), ""},
		"a taken domain":        {409, "domain_unavailable", github("x", object{"domains": []any{"new.example", "TAKEN.example"}}), ""},
		"no domain":             {400, "validation_failed", github("x", object{"domains": []any{"localhost"}}), "domains/0"},
		"a domain twice":        {400, "validation_failed", github("x", object{"domains": []any{"a.example", "A.example"}}), "domains/1"},
		"a long name":           {400, "validation_failed", github("x", object{"name": long(201)}), "name"},
		"no client":             {400, "validation_failed", github("x", object{"client_id": nil}), "client_id"},
		"no secret":             {400, "validation_failed", github("x", object{"client_secret": nil}), "client_secret"},
		"a secret of lines":     {400, "validation_failed", github("x", object{"client_secret": "a\nb"}), "client_secret"},
		"a scope with a space":  {400, "validation_failed", github("x", object{"scopes": []any{"a b"}}), "scopes/0"},
		"scopes of numbers":     {400, "validation_failed", github("x", object{"scopes": []any{1}}), "scopes"},
		"an unknown policy":     {400, "validation_failed", github("x", object{"link_policy": "maybe"}), "link_policy"},
		"an unknown factor":     {400, "validation_failed", github("x", object{"second_factor": "none"}), "second_factor"},
		"an unknown group":      {400, "validation_failed", github("x", object{"group_mapping": []any{object{"value": "a", "group_id": "grp_x"}}}), "group_mapping/0/group_id"},
		"a rule without value":  {400, "validation_failed", github("x", object{"group_mapping": []any{object{"group_id": "grp_x"}}}), "group_mapping/0/value"},
		"a target of no field":  {400, "attribute_mapping_invalid", github("x", object{"attribute_mapping": object{"phone": "$.phone"}}), ""},
		"a path of no syntax":   {400, "attribute_mapping_invalid", github("x", object{"attribute_mapping": object{"email": "email"}}), ""},
		"a path of number":      {400, "validation_failed", github("x", object{"attribute_mapping": object{"email": 1}}), "attribute_mapping"},
		"another kind's field":  {400, "validation_failed", github("x", object{"issuer": "https://example.com"}), "issuer"},
		"a Microsoft tenant":    {400, "validation_failed", object{"kind": "social.microsoft", "slug": "x", "name": "X", "client_id": "a", "client_secret": "b", "tenant": "a/b"}, "tenant"},
		"Apple without a key":   {400, "validation_failed", object{"kind": "social.apple", "slug": "x", "name": "X", "client_id": "a"}, "private_key"},
		"Apple without a team":  {400, "validation_failed", object{"kind": "social.apple", "slug": "x", "name": "X", "client_id": "a", "key_id": "KEY1234567", "private_key": appleKey(t)}, "team_id"},
		"Apple with an RSA key": {400, "validation_failed", object{"kind": "social.apple", "slug": "x", "name": "X", "client_id": "a", "team_id": "ABCDE12345", "key_id": "KEY1234567", "private_key": "-----BEGIN PRIVATE KEY-----"}, "private_key"},
		"no issuer":             {400, "validation_failed", with(oidc, object{"issuer": nil}), "issuer"},
		"an issuer with query":  {400, "validation_failed", with(oidc, object{"issuer": p.URL + "?a"}), "issuer"},
		"no endpoints":          {400, "validation_failed", with(oidc, object{"use_discovery": false, "authorization_endpoint": p.URL}), "token_endpoint"},
		"both sources":          {400, "validation_failed", object{"kind": "saml", "slug": "x", "name": "X", "idp_metadata_url": p.URL, "idp_metadata_xml": "<a/>"}, "idp_metadata_url"},
		"no source":             {400, "validation_failed", object{"kind": "saml", "slug": "x", "name": "X"}, "idp_metadata_url"},
		"not JSON":              {400, "invalid_json", `{`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := c.want(t, tc.status, tc.code, "POST", connectionsPath, tc.form)
			if tc.field != "" && fields(a)[0] != tc.field {
				t.Errorf("fields %v", fields(a))
			}
		})
	}
	equal(t, "supported", c.want(t, 400, "kind_unsupported", "POST", connectionsPath, object{"kind": "x", "slug": "x", "name": "X"}).details()["supported"].([]any)[0], "social.google")
	c.want(t, 409, "domain_unavailable", "PATCH", connectionsPath+"/"+last(connect(t, c, github("other", nil))), object{"domains": []any{"taken.example"}})
	for _, name := range []string{"id", "slug", "kind", "state", "created_at"} {
		equal(t, name, c.want(t, 400, "immutable_field", "PATCH", at, object{name: "x"}).details()["fields"], []any{name})
	}
	c.want(t, 400, "validation_failed", "PATCH", at, object{"name": nil})
	c.want(t, 400, "validation_failed", "PATCH", at, object{"jit_provisioning": "yes"})
	c.want(t, 400, "attribute_mapping_invalid", "PATCH", at, object{"attribute_mapping": object{"first_name": "$.a", "given_name": "$.b"}})
	c.want(t, 400, "invalid_json", "PATCH", at, `{`)
	equal(t, "a long key", c.send(t, "DELETE", at, http.Header{"Idempotency-Key": {long(256)}}, nil).code(), "idempotency_key_invalid")
	for _, test := range [][2]string{{"POST", "/enable"}, {"POST", "/disable"}, {"PATCH", ""}} {
		equal(t, "a long key", c.send(t, test[0], at+test[1], http.Header{"Idempotency-Key": {long(256)}, "Content-Type": {"application/json"}}, []byte("{}")).code(), "idempotency_key_invalid")
	}
	equal(t, "a long key", c.send(t, "POST", connectionsPath, http.Header{"Idempotency-Key": {long(256)}, "Content-Type": {"application/json"}}, []byte("{}")).code(), "idempotency_key_invalid")
}

func last(path string, _ object) string { return path[strings.LastIndex(path, "/")+1:] }

// discoveredProvider reads discovery documents, valid and not.
func discoveredProvider(t *testing.T, _ *world, c *client) {
	p := newProvider(t)
	form := func(more object) object {
		return with(object{"kind": "oidc", "slug": "staff", "name": "Staff", "client_id": "id", "client_secret": "cs", "issuer": p.URL}, more)
	}
	at, d := connect(t, c, form(object{"attribute_mapping": object{"groups": "$.roles"}}))
	for name, want := range (object{
		"issuer": p.URL, "use_discovery": true, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys", "userinfo_endpoint": p.URL + "/userinfo",
		"end_session_endpoint": nil, "scopes": []any{"openid", "profile", "email"}, "metadata_failing_since": nil,
	}) {
		equal(t, name, d[name], want)
	}
	if d["metadata_refreshed_at"] == nil {
		t.Error("no time of the refresh")
	}
	equal(t, "an unlisted claim", c.want(t, 400, "attribute_mapping_invalid", "PATCH", at, object{"attribute_mapping": object{"name": "$.full.name"}}).details(), object{"key": "name", "reason": "unsupported_claim"})
	c.want(t, 400, "attribute_mapping_invalid", "POST", connectionsPath, form(object{"slug": "b", "attribute_mapping": object{"name": "$.full"}}))

	refused := func(reason string, method, path string, body object) {
		t.Helper()
		equal(t, reason, c.want(t, 400, "metadata_fetch_failed", method, path, body).details()["reason"], reason)
	}
	// The issuer is compared byte for byte.
	refused("invalid", "POST", connectionsPath, form(object{"slug": "b", "issuer": p.URL + "/"}))
	host := strings.TrimPrefix(p.URL, "http://")
	for name, tc := range map[string]struct {
		member string
		value  any
	}{
		"of another issuer": {"issuer", "https://other.example.com"}, "without endpoint": {"token_endpoint", nil}, "with an endpoint of no URL": {"jwks_uri", "keys"},
		"with symmetric algorithms only": {"id_token_signing_alg_values_supported", []any{"HS256", "none"}}, "with a wrong type": {"token_endpoint", 7},
	} {
		before := p.discovery[tc.member]
		p.discover(tc.member, tc.value)
		a := c.want(t, 400, "metadata_fetch_failed", "POST", connectionsPath, form(object{"slug": "b"}))
		equal(t, name, a.details(), object{"url_host": host, "reason": "invalid"})
		c.want(t, 400, "metadata_fetch_failed", "PATCH", at, object{"issuer": p.URL})
		p.discover(tc.member, before)
	}
	refused("connection", "POST", connectionsPath, form(object{"slug": "b", "issuer": noReceiver}))
	refused("status", "POST", connectionsPath, form(object{"slug": "b", "issuer": p.URL + "/none"}))

	// Settings that do not concern the provider change without it.
	requests := p.requested()
	c.want(t, 200, "", "PATCH", at, object{"name": "Employees"})
	equal(t, "requests", p.requested(), requests)
	p.discover("end_session_endpoint", p.URL+"/logout")
	equal(t, "read again", c.want(t, 200, "", "PATCH", at, object{"issuer": p.URL}).data()["end_session_endpoint"], p.URL+"/logout")

	// Without discovery.
	manual := object{"use_discovery": false, "authorization_endpoint": "https://a.example.com/authorize", "token_endpoint": "https://a.example.com/token", "jwks_uri": "https://a.example.com/keys"}
	d = c.want(t, 200, "", "PATCH", at, manual).data()
	equal(t, "endpoints", []any{d["authorization_endpoint"], d["userinfo_endpoint"], d["metadata_refreshed_at"]}, []any{"https://a.example.com/authorize", nil, nil})
	equal(t, "and back", c.want(t, 200, "", "PATCH", at, object{"use_discovery": true}).data()["token_endpoint"], p.URL+"/token")
	c.want(t, 400, "validation_failed", "PATCH", at, object{"token_endpoint": "https://a.example.com/token"})
}

// samlProviders reads metadata of SAML, refreshes it, and reports certificates that expire.
func samlProviders(t *testing.T, w *world, c *client) {
	w.ahead.Store(0)
	p := newProvider(t)
	next, soon := newCertificate(t, time.Now().AddDate(2, 0, 0)), newCertificate(t, time.Now().AddDate(0, 0, 40))
	p.publish(samlMetadata("https://idp.example.com", soon))
	form := object{"kind": "saml", "slug": "partner", "name": "Partner", "idp_metadata_url": p.URL + "/metadata", "jit_provisioning": true, "attribute_mapping": object{"email": "mail", "first_name": "fn"}}
	at, d := connect(t, c, form)
	for name, want := range (object{
		"idp_metadata_url": p.URL + "/metadata", "idp_metadata_xml": nil, "idp_entity_id": "https://idp.example.com", "idp_sso_url": "https://idp.example.com/sso", "idp_slo_url": "https://idp.example.com/slo",
		"acs_url": c.base() + "/saml/sp/partner/acs", "sp_entity_id": c.base() + "/saml/sp/partner/metadata", "sp_metadata_url": c.base() + "/saml/sp/partner/metadata",
		"want_assertions_signed": true, "allow_idp_initiated": false, "attribute_mapping": object{"email": "mail", "first_name": "fn"},
	}) {
		equal(t, name, d[name], want)
	}
	certificates := func(path string) int {
		t.Helper()
		return len(c.want(t, 200, "", "GET", path, nil).data()["idp_certificates"].([]any))
	}
	equal(t, "certificates", certificates(at), 1)

	// XML that was sent.
	xml := samlMetadata("urn:other", next)
	byXML, d := connect(t, c, object{"kind": "saml", "slug": "sent", "name": "Sent", "idp_metadata_xml": xml})
	equal(t, "sent", []any{d["idp_metadata_url"], d["idp_metadata_xml"], d["idp_entity_id"]}, []any{nil, xml, "urn:other"})
	d = c.want(t, 200, "", "PATCH", byXML, object{"idp_metadata_url": p.URL + "/metadata"}).data()
	equal(t, "URL replaces XML", []any{d["idp_metadata_xml"], d["idp_entity_id"]}, []any{nil, "https://idp.example.com"})
	d = c.want(t, 200, "", "PATCH", byXML, object{"idp_metadata_xml": xml}).data()
	equal(t, "XML replaces URL", []any{d["idp_metadata_url"], d["idp_entity_id"]}, []any{nil, "urn:other"})
	for name, tc := range map[string]struct{ reason, xml string }{
		"a document type": {"invalid", `<!DOCTYPE a [<!ENTITY b "c">]>` + xml}, "not XML": {"invalid", "metadata"}, "another document": {"invalid", "<a/>"},
		"no certificate": {"invalid", samlMetadata("urn:x")}, "not a certificate": {"invalid", samlMetadata("urn:x", "AAAA")}, "a large one": {"too_large", xml + strings.Repeat(" ", federation.MaxMetadata)},
	} {
		a := c.want(t, 400, "metadata_fetch_failed", "PATCH", byXML, object{"idp_metadata_xml": tc.xml})
		equal(t, name, a.details(), object{"url_host": "", "reason": tc.reason})
	}

	// The daily refresh accepts a further certificate, and reports the end of the last one once.
	eventsOf := func(kind string) (found []object) {
		t.Helper()
		for _, e := range w.events(t, c, 0) {
			if string(e.Type) == kind {
				found = append(found, parse(t, string(e.Data)).(object))
			}
		}
		return found
	}
	refresh := func(after time.Duration) {
		t.Helper()
		w.later(after)
		requests := p.requested()
		for more := true; more; {
			var err error
			if more, err = w.connections.RefreshDue(context.WithoutCancel(t.Context())); err != nil {
				t.Fatal(err)
			}
		}
		until(t, "a refresh", func() bool { return p.requested() > requests })
		// The next one is due by the time at which this one ended.
		until(t, "the end of the refresh", func() bool { return w.jobs(t, "refresh federation metadata") == 0 })
	}
	p.publish(samlMetadata("https://idp.example.com", soon, next))
	refresh(25 * time.Hour)
	until(t, "the event", func() bool { return len(eventsOf("federation.metadata_refreshed")) == 1 })
	equal(t, "both certificates", certificates(at), 2)
	p.publish(samlMetadata("https://idp.example.com", soon))
	refresh(25 * time.Hour)
	until(t, "the event", func() bool { return len(eventsOf("federation.metadata_refreshed")) == 2 })
	equal(t, "no certificate expires yet", len(eventsOf("federation.certificate_expiring")), 0)
	refresh(10 * 24 * time.Hour)
	until(t, "the event", func() bool { return len(eventsOf("federation.certificate_expiring")) == 1 })
	expiring := eventsOf("federation.certificate_expiring")[0]
	equal(t, "the certificate", expiring["certificate"], c.want(t, 200, "", "GET", at, nil).data()["idp_certificates"].([]any)[0])

	// A provider that fails, or that becomes another one, changes nothing but the time.
	failing := func() any { t.Helper(); return c.want(t, 200, "", "GET", at, nil).data()["metadata_failing_since"] }
	p.publish(samlMetadata("https://evil.example.com", next))
	refresh(25 * time.Hour)
	until(t, "a failure", func() bool { return failing() != nil })
	since := failing()
	p.publish("")
	refresh(2 * time.Hour)
	equal(t, "the first failure", failing(), since)
	equal(t, "entity", c.want(t, 200, "", "GET", at, nil).data()["idp_entity_id"], "https://idp.example.com")
	p.publish(samlMetadata("https://idp.example.com", soon))
	refresh(2 * time.Hour)
	until(t, "a success", func() bool { return failing() == nil })
	equal(t, "one event of the end", len(eventsOf("federation.certificate_expiring")), 1)
	w.ahead.Store(0)
}

// mappingPreview applies mappings to claims.
func mappingPreview(t *testing.T, _ *world, c *client) {
	staff := group(t, c, "staff")
	at, _ := connect(t, c, github("code", object{"attribute_mapping": object{"groups": "$.teams", "attributes.company": "$.company"}, "group_mapping": []any{object{"value": "eng", "group_id": staff}}}))
	claims := object{"login": "ann", "email": "ann@example.com", "email_verified": true, "avatar_url": "javascript:alert(1)", "teams": []any{"eng", "ops"}}
	d := c.want(t, 200, "", "POST", at+"/mapping-preview", object{"claims": claims}).data()
	var warnings []string
	for _, item := range d["warnings"].([]any) {
		warnings = append(warnings, item.(object)["target"].(string)+" "+item.(object)["code"].(string))
	}
	equal(t, "warnings", warnings, []string{"attributes.company missing", "picture invalid"})
	delete(d, "warnings")
	equal(t, "account", d, object{
		"email": "ann@example.com", "email_verified": true, "name": "ann", "given_name": nil, "family_name": nil, "picture": nil, "locale": nil,
		"attributes": object{}, "groups": []any{"eng", "ops"}, "group_ids": []any{staff},
	})
	d = c.want(t, 200, "", "POST", at+"/mapping-preview", object{"claims": with(claims, object{"email_verified": nil, "x": object{"y": []any{1.0}}}), "attribute_mapping": object{"attributes.x": "$.x"}}).data()
	equal(t, "another mapping", []any{d["email_verified"], d["groups"], d["attributes"]}, []any{false, []any{}, object{"x": object{"y": []any{1.0}}}})
	c.want(t, 200, "", "PATCH", at, object{"trust_email": true})
	d = c.want(t, 200, "", "POST", at+"/mapping-preview", object{"claims": with(claims, object{"email_verified": nil})}).data()
	equal(t, "a trusted address", d["email_verified"], true)
	d = c.want(t, 200, "", "POST", at+"/mapping-preview", object{"claims": with(claims, object{"email_verified": false})}).data()
	equal(t, "an address that is not verified", d["email_verified"], false)
	c.want(t, 400, "attribute_mapping_invalid", "POST", at+"/mapping-preview", object{"claims": claims, "attribute_mapping": object{"x": "$.x"}})
	for _, form := range []any{object{}, object{"claims": nil}, object{"claims": []any{}}, object{"claims": object{}, "attribute_mapping": []any{}}} {
		c.want(t, 400, "validation_failed", "POST", at+"/mapping-preview", form)
	}
	c.want(t, 400, "invalid_json", "POST", at+"/mapping-preview", `{`)
}

// connectionRights lets callers decide about accounts only as far as their own rights go.
func connectionRights(t *testing.T, w *world, c *client) {
	weak := c.with(w.token(t, c, w.application(t, c, "federation:write", "federation:read")))
	missing := "users:read" // the first of all that it lacks
	denied := func(required, method, path string, body object) {
		t.Helper()
		equal(t, method+" "+path, weak.want(t, 403, "permission_denied", method, path, body).details()["required_scope"], required)
	}
	_, d := connect(t, c, github("full", nil))
	equal(t, "the default of an administrator", d["link_policy"], "verified_email")
	at, d := connect(t, weak, github("weak", nil))
	equal(t, "the default of others", d["link_policy"], "always_prompt")
	denied(missing, "POST", connectionsPath, github("x", object{"link_policy": "verified_email"}))
	denied(missing, "PATCH", at, object{"link_policy": "verified_email"})
	equal(t, "null is the default", weak.want(t, 200, "", "PATCH", at, object{"link_policy": nil}).data()["link_policy"], "always_prompt")

	// The scopes of a mapped group are given.
	strong := group(t, c, "strong", "users:write", "federation:read")
	plain := group(t, c, "plain", "federation:read")
	rule := func(groupID string) object {
		return object{"group_mapping": []any{object{"value": "eng", "group_id": groupID}}}
	}
	denied("users:write", "POST", connectionsPath, github("x", rule(strong)))
	denied("users:write", "PATCH", at, rule(strong))
	weak.want(t, 200, "", "PATCH", at, rule(plain))
	c.want(t, 200, "", "PATCH", at, rule(strong))
	weak.want(t, 200, "", "PATCH", at, object{"name": "Renamed", "domains": []any{"weak.example"}})
	denied("users:write", "PATCH", at, object{"client_id": "another"})
	c.want(t, 204, "", "DELETE", groupsPath+"/"+strong, nil)
	weak.want(t, 200, "", "PATCH", at, object{"client_id": "another"}) // the rule has no effect any more

	// Who the provider is cannot change under users who sign in with it.
	ann := member(t, c, "ann@example.com")
	i := w.identityOf(t, c, ann, "weak", "1")
	i.ConnectionID = last(at, nil)
	if err := w.authn.Link(t.Context(), i); err != nil {
		t.Fatal(err)
	}
	denied(missing, "PATCH", at, object{"client_id": "a third"})
	denied(missing, "PATCH", at, object{"attribute_mapping": object{"email": "$.mail"}})
	weak.want(t, 200, "", "PATCH", at, object{"name": "Renamed again"})
	c.want(t, 200, "", "PATCH", at, object{"client_id": "a third"})
	identities := func() int {
		t.Helper()
		return len(c.want(t, 200, "", "GET", "/api/v1/users/"+ann, nil).data()["external_identities"].([]any))
	}
	equal(t, "identities", identities(), 1)
	weak.want(t, 204, "", "DELETE", at, nil)
	equal(t, "identities of a deleted connection", identities(), 0)
}

// connectionLimit creates as many connections as a tenant can have.
func connectionLimit(t *testing.T, _ *world, c *client) {
	for i := range federation.MaxConnections {
		connect(t, c, github(fmt.Sprintf("c%d", i), nil))
	}
	a := c.want(t, 409, "connection_limit_reached", "POST", connectionsPath, github("more", nil))
	equal(t, "limit", a.details()["limit"], float64(federation.MaxConnections))
}
