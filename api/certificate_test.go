package api_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"stonetown/api"
	"stonetown/internal/sqldb"
	"stonetown/oauth/dpop/dpoptest"
	"stonetown/oauth/protocol"
	"stonetown/server"
)

// clientCertificate is a certificate of a client, with its key as a JWK.
type clientCertificate struct {
	der []byte
	signer
}

func newClientCertificate(t testing.TB, name string, change func(*x509.Certificate)) clientCertificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name, Organization: []string{"Acme"}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{name + ".example.com"},
	}
	if change != nil {
		change(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	c := clientCertificate{der, signerOf(t, key, name, "ES256")}
	c.public["x5c"] = []any{base64.StdEncoding.EncodeToString(der)}
	return c
}

// header is the header field that a proxy sets (RFC 9440).
func (c clientCertificate) header() http.Header {
	return http.Header{"Client-Cert": {":" + base64.StdEncoding.EncodeToString(c.der) + ":"}}
}

func (c clientCertificate) thumbprint() string {
	sum := sha256.Sum256(c.der)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// mtlsWorld is a world behind a proxy that passes certificates.
func mtlsWorld(t *testing.T, database string) (*world, *client) {
	t.Helper()
	w := newWorldOn(t, sqldb.Config{URL: databases[database](t)}, nil, func(c *server.Config) {
		c.ClientCertHeader, c.TrustedProxies = "Client-Cert", []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	return w, w.tenant(t, "mtls")
}

// credentialsWith requests a token by client credentials with a certificate; more are other fields.
func credentialsWith(t testing.TB, p *relyingParty, header http.Header, more url.Values) answer {
	t.Helper()
	v := url.Values{"grant_type": {"client_credentials"}, "client_id": {p.id}}
	maps.Copy(v, more)
	return p.form(t, header, v)
}

func TestClientCertificates(t *testing.T) {
	for _, database := range slices.Sorted(maps.Keys(databases)) {
		t.Run(database, func(t *testing.T) {
			w, c := mtlsWorld(t, database)
			t.Run("console", func(t *testing.T) { certificatesInConsole(t, c) })
			t.Run("authentication", func(t *testing.T) { tlsClientAuth(t, w, c) })
			t.Run("bound tokens", func(t *testing.T) { certificateBound(t, w, c) })
			t.Run("public clients", func(t *testing.T) { certificateBoundRefresh(t, c) })
		})
	}
}

func certificatesInConsole(t *testing.T, c *client) {
	ann := member(t, c, "admin@example.com")
	group := c.want(t, 201, "", "POST", "/api/v1/groups", object{"slug": "admins", "name": "Admins", "scopes": []string{"applications:read", "applications:write"}}).data()["id"].(string)
	c.want(t, 201, "", "POST", "/api/v1/groups/"+group+"/members", object{"user_id": ann})
	token := steppedUp(t, signedIn(t, c, "admin@example.com")).token
	p := c.visit(t, "GET", "/console/applications/new?type=server", asBrowser(token), nil)
	equal(t, "offered", []any{p.status, strings.Contains(p.html, ">self_signed_tls_client_auth<")}, []any{200, true})
}

func tlsClientAuth(t *testing.T, w *world, c *client) {
	metadata := c.with("").want(t, 200, "", "GET", "/.well-known/oauth-authorization-server", nil).body
	equal(t, "methods", metadata["token_endpoint_auth_methods_supported"], []any{"client_secret_basic", "client_secret_post", "private_key_jwt", "tls_client_auth", "self_signed_tls_client_auth", "none"})
	equal(t, "bound tokens", []any{metadata["tls_client_certificate_bound_access_tokens"], metadata["mtls_endpoint_aliases"]}, []any{true, nil})

	worker, thief := newClientCertificate(t, "worker", nil), newClientCertificate(t, "thief", nil)
	expired := newClientCertificate(t, "worker", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
	app := newMachine(t, c, object{"token_endpoint_auth_method": "tls_client_auth", "tls_client_auth_subject_dn": "CN=worker, O=Acme"})
	equal(t, "no secret", app.secret, "")
	equal(t, "authenticated", credentialsWith(t, app, worker.header(), nil).status, 200)
	escaped := http.Header{"Client-Cert": {url.PathEscape(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: worker.der})))}}
	equal(t, "escaped PEM", credentialsWith(t, app, escaped, nil).status, 200)
	byName := newMachine(t, c, object{"token_endpoint_auth_method": "tls_client_auth", "tls_client_auth_san_dns": "worker.example.com"})
	equal(t, "by DNS name", credentialsWith(t, byName, worker.header(), nil).status, 200)

	two := http.Header{"Client-Cert": {worker.header().Get("Client-Cert"), worker.header().Get("Client-Cert")}}
	for what, tc := range map[string]struct {
		header http.Header
		more   url.Values
		code   string
	}{
		"no certificate":             {nil, nil, "invalid_client"},
		"an empty field":             {http.Header{"Client-Cert": {""}}, nil, "invalid_client"},
		"another client's":           {thief.header(), nil, "invalid_client"},
		"an expired one":             {expired.header(), nil, "invalid_request"},
		"two":                        {two, nil, "invalid_request"},
		"malformed":                  {http.Header{"Client-Cert": {":AAAA:"}}, nil, "invalid_request"},
		"text":                       {http.Header{"Client-Cert": {"CN=worker,O=Acme"}}, nil, "invalid_request"},
		"another field":              {http.Header{"X-Client-Cert": worker.header()["Client-Cert"]}, nil, "invalid_client"},
		"a certificate and a secret": {worker.header(), url.Values{"client_secret": {"cs_x"}}, "invalid_client"},
	} {
		equal(t, what, credentialsWith(t, app, tc.header, tc.more).code(), tc.code)
	}
	secretApp := newMachine(t, c, nil)
	equal(t, "a certificate instead of a secret", credentialsWith(t, secretApp, worker.header(), nil).code(), "invalid_client")
	equal(t, "a certificate beside a secret", credentialsWith(t, secretApp, worker.header(), url.Values{"client_secret": {secretApp.secret}}).status, 200)

	// The same request from an address that is not a trusted proxy.
	direct := *app
	direct.client = &client{server: httptestServer(t, w, func(c *api.Config) { c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")} }), host: c.host}
	equal(t, "from an untrusted address", credentialsWith(t, &direct, worker.header(), nil).code(), "invalid_client")
	equal(t, "with X-Forwarded-For", credentialsWith(t, &direct, headersOf(worker.header(), http.Header{"X-Forwarded-For": {"10.0.0.1"}}), nil).code(), "invalid_client")

	// Self-signed certificates.
	signed := newMachine(t, c, object{"token_endpoint_auth_method": "self_signed_tls_client_auth", "jwks": keySet(worker.signer)})
	equal(t, "self-signed", credentialsWith(t, signed, worker.header(), nil).status, 200)
	again := newClientCertificate(t, "worker", nil)
	equal(t, "another certificate with the same name", credentialsWith(t, signed, again.header(), nil).code(), "invalid_client")
	equal(t, "the certificate of another key", credentialsWith(t, signed, thief.header(), nil).code(), "invalid_client")

	// All endpoints for clients, and grants without mandatory authentication.
	token := credentialsWith(t, app, worker.header(), nil).body["access_token"].(string)
	equal(t, "introspection", app.present(t, "/oauth2/introspect", worker.header(), url.Values{"client_id": {app.id}, "token": {token}}).body["active"], true)
	equal(t, "introspection without", app.present(t, "/oauth2/introspect", nil, url.Values{"client_id": {app.id}, "token": {token}}).status, 401)
	ci := newPlatform(t)
	issuer := trust(t, c, object{"issuer": ci.URL})
	both := newMachine(t, c, object{"workload_identities": []any{object{"issuer_id": issuer, "subject": mainBranch}}, "token_endpoint_auth_method": "tls_client_auth", "tls_client_auth_san_dns": "worker.example.com"})
	assertion := func() url.Values {
		return url.Values{"grant_type": {protocol.GrantJWTBearer}, "assertion": {ci.token(t, c.base(), nil)}}
	}
	equal(t, "a workload with the certificate", credentialsWith(t, both, worker.header(), assertion()).status, 200)
	equal(t, "a workload with another certificate", credentialsWith(t, both, thief.header(), assertion()).code(), "invalid_client")
	equal(t, "a workload without", credentialsWith(t, both, nil, assertion()).status, 200)
	secretBoth := newMachine(t, c, object{"workload_identities": []any{object{"issuer_id": issuer, "subject": mainBranch}}})
	equal(t, "a certificate that is not asked for", credentialsWith(t, secretBoth, thief.header(), assertion()).status, 200)

	for field, bad := range map[string][]object{
		"tls_client_auth_subject_dn": {{"token_endpoint_auth_method": "tls_client_auth"}, {"token_endpoint_auth_method": "tls_client_auth", "tls_client_auth_subject_dn": "CN=a", "tls_client_auth_san_dns": "a"}, {"tls_client_auth_san_dns": "a"}},
		"tls_client_auth_san_ip":     {{"token_endpoint_auth_method": "tls_client_auth", "tls_client_auth_san_ip": "a"}},
		"tls_client_auth_san_uri":    {{"token_endpoint_auth_method": "tls_client_auth", "tls_client_auth_san_uri": "a\nb"}},
		"jwks": {{"token_endpoint_auth_method": "self_signed_tls_client_auth"}, {"token_endpoint_auth_method": "self_signed_tls_client_auth", "jwks": keySet(newSigner(t, "a"))}, {"token_endpoint_auth_method": "self_signed_tls_client_auth", "jwks": object{"keys": []any{func() object {
			mixed := maps.Clone(worker.public)
			mixed["x5c"] = thief.public["x5c"]
			return mixed
		}()}}}},
		"tls_client_certificate_bound_access_tokens": {{"tls_client_certificate_bound_access_tokens": true, "dpop_bound_access_tokens": true}},
	} {
		for _, changes := range bad {
			form := object{"name": "A", "type": "m2m"}
			maps.Copy(form, changes)
			equal(t, fmt.Sprint(changes), fields(c.want(t, 400, "validation_failed", "POST", appsPath, form)), []string{field})
		}
	}
	less := c.with(w.token(t, c, w.application(t, c, "applications:write")))
	held := newMachine(t, c, object{"allowed_scopes": []any{"users:write"}, "token_endpoint_auth_method": "tls_client_auth", "tls_client_auth_san_dns": "a.example.com"})
	less.want(t, 403, "permission_denied", "PATCH", appsPath+"/"+applicationID(t, c, held.id), object{"tls_client_auth_san_dns": "thief.example.com"})

	// Registration, and FAPI 2.0.
	c.want(t, 200, "", "PATCH", "/api/v1/settings", object{"dcr_mode": "open"})
	registered := c.with("").want(t, 201, "", "POST", "/oauth2/register", object{
		"redirect_uris": []any{callback}, "token_endpoint_auth_method": "tls_client_auth", "tls_client_auth_san_dns": "worker.example.com", "tls_client_certificate_bound_access_tokens": true,
	}).body
	equal(t, "registered", []any{registered["tls_client_auth_san_dns"], registered["tls_client_certificate_bound_access_tokens"], registered["client_secret"], registered["tls_client_auth_subject_dn"]}, []any{"worker.example.com", true, nil, nil})
	c.with("").want(t, 400, "invalid_client_metadata", "POST", "/oauth2/register", object{"redirect_uris": []any{callback}, "token_endpoint_auth_method": "tls_client_auth"})
	bank := newMachine(t, c, object{"profile": "fapi2", "token_endpoint_auth_method": "tls_client_auth", "tls_client_auth_san_dns": "worker.example.com", "tls_client_certificate_bound_access_tokens": true, "dpop_bound_access_tokens": false})
	equal(t, "FAPI 2.0", credentialsWith(t, bank, worker.header(), nil).status, 200)
	equal(t, "FAPI 2.0 without binding", fields(c.want(t, 400, "validation_failed", "PATCH", appsPath+"/"+applicationID(t, c, bank.id), object{"tls_client_certificate_bound_access_tokens": false})), []string{"dpop_bound_access_tokens"})
}

// headersOf returns the fields of several headers.
func headersOf(headers ...http.Header) http.Header {
	all := http.Header{}
	for _, h := range headers {
		maps.Copy(all, h)
	}
	return all
}

func certificateBound(t *testing.T, _ *world, c *client) {
	own, other := newClientCertificate(t, "own", nil), newClientCertificate(t, "other", nil)
	key := dpoptest.NewKey(t)
	app := newMachine(t, c, object{"tls_client_certificate_bound_access_tokens": true, "token_exchange": object{"enabled": true}, "introspect_all": true})
	secret := url.Values{"client_secret": {app.secret}}
	equal(t, "without a certificate", credentialsWith(t, app, nil, secret).code(), "invalid_request")
	proving := app.proving(key)
	equal(t, "with a certificate and a proof", credentialsWith(t, proving, own.header(), secret).code(), "invalid_request")
	a := credentialsWith(t, app, own.header(), secret)
	equal(t, "issued", []any{a.status, a.body["token_type"]}, []any{200, "Bearer"})
	token := a.body["access_token"].(string)
	confirmation := object{"x5t#S256": own.thumbprint()}
	equal(t, "cnf", claimsOf(t, token)["cnf"], confirmation)
	equal(t, "introspection", app.present(t, "/oauth2/introspect", nil, url.Values{"client_id": {app.id}, "client_secret": {app.secret}, "token": {token}}).body["cnf"], confirmation)

	const target = "/api/v1/resource-types"
	use := func(what, scheme string, header http.Header, status int, reason any) {
		t.Helper()
		a := c.with("").send(t, "GET", target, headersOf(http.Header{"Authorization": {scheme + " " + token}}, header), nil)
		equal(t, what, []any{a.status, a.details()["reason"]}, []any{status, reason})
	}
	for range 2 { // from the cache as well
		use("with the certificate", "Bearer", own.header(), 200, nil)
		use("without", "Bearer", nil, 401, "wrong_certificate")
		use("with another", "Bearer", other.header(), 401, "wrong_certificate")
	}
	use("malformed", "Bearer", http.Header{"Client-Cert": {"x"}}, 401, "wrong_certificate")
	use("two", "Bearer", http.Header{"Client-Cert": {own.header().Get("Client-Cert"), other.header().Get("Client-Cert")}}, 401, "wrong_certificate")
	proofs := c.with(token).proving(key)
	equal(t, "as a DPoP token", proofs.send(t, "GET", target, own.header(), nil).status, 401)

	// An unbound token, and one of a DPoP key, on a connection with a certificate.
	plain := newMachine(t, c, nil)
	unbound := credentialsWith(t, plain, own.header(), url.Values{"client_secret": {plain.secret}}).body["access_token"].(string)
	equal(t, "not bound", claimsOf(t, unbound)["cnf"], nil)
	equal(t, "an unbound token", c.with(unbound).send(t, "GET", target, other.header(), nil).status, 200)
	dpopParty := plain.proving(key)
	dpopBound := credentialsWith(t, dpopParty, nil, url.Values{"client_secret": {plain.secret}}).body["access_token"].(string)
	stolen := c.with("").send(t, "GET", target, headersOf(http.Header{"Authorization": {"Bearer " + dpopBound}}, own.header()), nil)
	equal(t, "a DPoP token as bearer, with a certificate", []any{stolen.status, stolen.details()["reason"]}, []any{401, "bound"})

	// Token exchange keeps the binding.
	exchange := func(by *relyingParty, header http.Header) answer {
		return by.form(t, header, url.Values{
			"grant_type": {protocol.GrantTokenExchange}, "client_id": {by.id}, "client_secret": {by.secret},
			"subject_token": {token}, "subject_token_type": {protocol.TypeAccessToken},
		})
	}
	exchanged := exchange(app, own.header())
	equal(t, "exchanged", exchanged.status, 200)
	equal(t, "its cnf", claimsOf(t, exchanged.body["access_token"].(string))["cnf"], confirmation)
	equal(t, "exchanged with another certificate", exchange(app, other.header()).status, 400)
	loose := newMachine(t, c, object{"token_exchange": object{"enabled": true}})
	equal(t, "exchanged without binding", exchange(loose, own.header()).code(), "invalid_request")
	equal(t, "exchanged for a DPoP key", exchange(loose.proving(key), own.header()).code(), "invalid_request")
}

// certificateBoundRefresh binds the refresh tokens of a public client (RFC 8705 §4).
func certificateBoundRefresh(t *testing.T, c *client) {
	own, other := newClientCertificate(t, "own", nil), newClientCertificate(t, "other", nil)
	member(t, c, "ann@example.com")
	app := newParty(t, c, object{"type": "native", "tls_client_certificate_bound_access_tokens": true})
	app.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	code := app.code(t, nil)
	redeem := func(header http.Header, form url.Values) answer {
		form.Set("client_id", app.id)
		return app.form(t, header, form)
	}
	first := redeem(own.header(), url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {callback}, "code_verifier": {verifier}})
	equal(t, "redeemed", first.status, 200)
	equal(t, "ID token", claimsOf(t, first.body["id_token"].(string))["cnf"], object{"x5t#S256": own.thumbprint()})
	refresh := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {first.body["refresh_token"].(string)}}
	equal(t, "with another certificate", redeem(other.header(), maps.Clone(refresh)).code(), "invalid_grant")
	equal(t, "without a certificate", redeem(nil, maps.Clone(refresh)).code(), "invalid_request")
	second := redeem(own.header(), maps.Clone(refresh))
	equal(t, "renewed", second.status, 200)
	info := func(header http.Header) int {
		return c.with("").send(t, "GET", "/oauth2/userinfo", headersOf(http.Header{"Authorization": {"Bearer " + second.body["access_token"].(string)}}, header), nil).status
	}
	equal(t, "userinfo", []any{info(own.header()), info(other.header()), info(nil)}, []any{200, 401, 401})
}

// TestNoClientCertificates runs a server without the header field: certificates have no effect.
func TestNoClientCertificates(t *testing.T) {
	w := newWorld(t, databases["SQLite"](t), func(c *api.Config) { c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} })
	c := w.tenant(t, "no-mtls")
	metadata := c.with("").want(t, 200, "", "GET", "/.well-known/oauth-authorization-server", nil)
	if strings.Contains(metadata.text, "tls_client") {
		t.Error("discovery offers certificates")
	}
	for field, form := range map[string]object{
		"token_endpoint_auth_method":                 {"token_endpoint_auth_method": "tls_client_auth", "tls_client_auth_san_dns": "a"},
		"tls_client_certificate_bound_access_tokens": {"tls_client_certificate_bound_access_tokens": true},
	} {
		form["name"], form["type"] = "A", "m2m"
		equal(t, field, fields(c.want(t, 400, "validation_failed", "POST", appsPath, form)), []string{field})
	}
}
