package federation

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"stonetown/identity"
	"stonetown/identity/external"
	"stonetown/identity/federation/relyingparty"
	"stonetown/identity/federation/serviceprovider"
	"stonetown/internal/eventlog"
	"stonetown/internal/jobs"
	"stonetown/internal/outbound"
	"stonetown/internal/pgtest"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
	"stonetown/internal/sqldb/sqltest"
	"stonetown/tuplestore/sqlstore"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var acme = Tenant{ID: "tnt_a", BaseURL: "https://acme.example"}

// fixture is a registry on one of the databases, without groups and with all rights.
type fixture struct {
	testing.TB
	*Registry
	ahead atomic.Int64 // added to the clock, in nanoseconds
}

type noGroups struct{}

func (noGroups) Group(context.Context, string, string) (identity.Group, error) {
	return identity.Group{}, identity.ErrGroupNotFound
}

type allRights struct{}

func (allRights) MayGive(context.Context, string, []string) error { return nil }

type oneTenant struct{}

func (oneTenant) FederationTenant(context.Context, string) (Tenant, error) { return acme, nil }

func open(t testing.TB, url string, client *outbound.Client) *fixture {
	t.Helper()
	db, err := sqldb.Open(t.Context(), sqldb.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if err := db.Migrate(t.Context(), Migrations(), external.Migrations(), eventlog.Migrations(), sqlstore.Migrations(), jobs.Migrations()); err != nil {
		t.Fatal(err)
	}
	key, err := seal.NewKey(bytes.Repeat([]byte{1}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{TB: t}
	clock := func() time.Time { return time.Now().Add(time.Duration(f.ahead.Load())) }
	queue, err := jobs.New(jobs.Config{DB: db, Seal: key, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	providers, err := relyingparty.New(relyingparty.Config{Client: client})
	if err != nil {
		t.Fatal(err)
	}
	f.Registry = NewRegistry(Config{
		DB: db, Seal: key, Groups: noGroups{}, Authority: allRights{}, Tenants: oneTenant{}, Jobs: queue, Outbound: client, Providers: providers, Clock: clock, Logger: slog.New(slog.DiscardHandler),
	})
	return f
}

var insecure = outbound.New(outbound.Config{AllowInsecure: true})

func everywhere(t *testing.T, test func(f *fixture)) {
	for name, url := range map[string]func(testing.TB) string{"SQLite": sqlite, "PostgreSQL": pgtest.URL} {
		t.Run(name, func(t *testing.T) { test(open(t, url(t), insecure)) })
	}
}

func sqlite(t testing.TB) string { return "sqlite://" + filepath.Join(t.TempDir(), "test.db") }

// connection is a valid one for which nothing is fetched.
func connection(slug string) Connection {
	c := GitHub.Defaults()
	c.Slug, c.Name, c.ClientID, c.ClientSecret = slug, "Code", "id", NewSecret("the secret")
	return c
}

func (f *fixture) create(c Connection) Connection {
	f.Helper()
	created, err := f.Create(f.Context(), acme, c)
	if err != nil {
		f.Fatal(err)
	}
	return created
}

func (f *fixture) get(connectionID string) Connection {
	f.Helper()
	c, err := f.Get(f.Context(), acme.ID, connectionID)
	if err != nil {
		f.Fatal(err)
	}
	return c
}

// events lists the types of the events.
func (f *fixture) events() (types []string) {
	f.Helper()
	rows, err := f.db.Query(f.Context(), `SELECT type FROM events WHERE tenant_id = $1 ORDER BY position`, acme.ID)
	if err != nil {
		f.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			f.Fatal(err)
		}
		types = append(types, strings.TrimPrefix(name, "federation."))
	}
	if err := rows.Err(); err != nil {
		f.Fatal(err)
	}
	return types
}

// provider responds with a document that can be replaced.
type provider struct {
	*httptest.Server
	mu       sync.Mutex
	document string
	requests int
}

func newProvider(t testing.TB, document string) *provider {
	p := &provider{document: document}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.requests++
		fmt.Fprint(w, p.document)
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *provider) publish(document string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.document = document
}

func (p *provider) requested() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests
}

func certificate(t testing.TB, until time.Time) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: until}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(der)
}

const (
	bindings     = "urn:oasis:names:tc:SAML:2.0:bindings:"
	protocolAttr = `protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol"`
	sso          = `<SingleSignOnService Binding="` + bindings + `HTTP-Redirect" Location="https://idp.example.com/sso"/>`
)

func key(use, certificate string) string {
	if use != "" {
		use = ` use="` + use + `"`
	}
	return `<KeyDescriptor` + use + `><KeyInfo xmlns="http://www.w3.org/2000/09/xmldsig#"><X509Data><X509Certificate>` + certificate + `</X509Certificate></X509Data></KeyInfo></KeyDescriptor>`
}

func entity(attributes, content string) string {
	return `<EntityDescriptor xmlns="urn:oasis:names:tc:SAML:2.0:metadata" ` + attributes + `><IDPSSODescriptor ` + protocolAttr + `>` + content + `</IDPSSODescriptor></EntityDescriptor>`
}

// Secrets are sealed in the database, for one connection and one purpose.
func TestSecrets(t *testing.T) {
	everywhere(t, func(f *fixture) {
		c := f.create(connection("a"))
		got, err := f.Secrets(f.get(c.ID))
		if err != nil || got.Client != "the secret" || got.AppleKey != nil {
			f.Errorf("%v, %v", got, err)
		}
		var stored []byte
		if err := f.db.QueryRow(f.Context(), `SELECT client_secret FROM federation_connections WHERE id = $1`, c.ID).Scan(&stored); err != nil || bytes.Contains(stored, []byte("secret")) {
			f.Errorf("stored as %q, %v", stored, err)
		}
		for name, moved := range map[string]Connection{
			"another connection": {ID: "fed_x", TenantID: acme.ID, ClientSecret: Secret{sealed: stored}}, "another tenant": {ID: c.ID, TenantID: "tnt_b", ClientSecret: Secret{sealed: stored}},
			"another purpose": {ID: c.ID, TenantID: acme.ID, PrivateKey: Secret{sealed: stored}},
		} {
			if _, err := f.Secrets(moved); !errors.Is(err, seal.ErrCorrupt) {
				f.Errorf("%s: %v", name, err)
			}
		}
		if text := fmt.Sprintf("%v %+v %#v", NewSecret("the secret"), connection("a"), connection("a")); strings.Contains(text, "the secret") {
			f.Errorf("printed: %s", text)
		}
	})
}

func TestPrivateKey(t *testing.T) {
	f := open(t, sqlite(t), insecure)
	pemOf := func(key any) string {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	}
	good, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := Apple.Defaults()
	c.Slug, c.Name, c.ClientID, c.TeamID, c.KeyID, c.PrivateKey = "apple", "Apple", "com.example", "ABCDE12345", "KEY1234567", NewSecret(pemOf(good))
	created := f.create(c)
	got, err := f.Secrets(f.get(created.ID))
	if err != nil || got.AppleKey == nil {
		t.Errorf("%v, %v", got.AppleKey, err)
	}
	other, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"another curve": pemOf(other), "two keys": pemOf(good) + pemOf(good), "no key": "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----"} {
		c.Slug, c.PrivateKey = "b", NewSecret(text)
		var field *FieldError
		if _, err := f.Create(t.Context(), acme, c); !errors.As(err, &field) || field.Field != "private_key" {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A client secret, which is such a signed token, does without a key.
	d := Apple.Defaults()
	d.Slug, d.Name, d.ClientID, d.ClientSecret = "signed", "Apple", "com.example", NewSecret("a.b.c")
	f.create(d)
}

// Home realms and slugs lead to the connection while it has them.
func TestFind(t *testing.T) {
	everywhere(t, func(f *fixture) {
		c := connection("a")
		c.Domains = []string{"Example.COM", "bücher.example"}
		created := f.create(c)
		for domain, want := range map[string]bool{"example.com": true, "EXAMPLE.com.": true, "xn--bcher-kva.example": true, "BÜCHER.example": true, "other.com": false, "sub.example.com": false, "": false, "a..b": false, "\x00": false, "localhost": false} {
			found, err := f.ByDomain(f.Context(), acme.ID, domain)
			if want != (err == nil) || err != nil && !errors.Is(err, ErrNotFound) || want && found != f.get(created.ID).summary() {
				f.Errorf("%q: %v, %v", domain, found, err)
			}
		}
		if found, err := f.BySlug(f.Context(), acme.ID, "a"); err != nil || found.ID != created.ID {
			f.Errorf("by slug: %v, %v", found, err)
		}
		for _, slug := range []string{"b", "\x00", ""} {
			if _, err := f.BySlug(f.Context(), acme.ID, slug); !errors.Is(err, ErrNotFound) {
				f.Errorf("%q: %v", slug, err)
			}
		}
		if _, err := f.ByDomain(f.Context(), "tnt_b", "example.com"); !errors.Is(err, ErrNotFound) {
			f.Errorf("of another tenant: %v", err)
		}
		if _, err := f.Get(f.Context(), "tnt_b", created.ID); !errors.Is(err, ErrNotFound) {
			f.Errorf("of another tenant: %v", err)
		}
		_, err := f.Update(f.Context(), acme, created.ID, Change{Apply: func(c *Connection) error {
			c.Domains = []string{"example.com"}
			return nil
		}})
		if err != nil {
			f.Fatal(err)
		}
		taken := connection("b")
		taken.Domains = []string{"bücher.example"}
		f.create(taken)
		taken.Slug, taken.Domains = "c", []string{"example.com"}
		var other *DomainError
		if _, err := f.Create(f.Context(), acme, taken); !errors.As(err, &other) || other.Domain != "example.com" {
			f.Errorf("a domain of two: %v", err)
		}
		if _, err := f.Disable(f.Context(), acme, created.ID); err != nil {
			f.Fatal(err)
		}
		if _, err := f.ByDomain(f.Context(), acme.ID, "example.com"); !errors.Is(err, ErrNotFound) {
			f.Errorf("of a disabled connection: %v", err)
		}
		if err := f.Delete(f.Context(), acme, created.ID); err != nil {
			f.Fatal(err)
		}
		c.Domains = c.Domains[:1]
		f.create(c)
	})
}

// PostgreSQL plans statements for empty tables, and keeps the plans for a while. None may read
// the connections of all tenants.
func TestPlansUseIndexes(t *testing.T) {
	f := open(t, pgtest.URL(t), insecure)
	for statement, args := range map[string][]any{
		selectByID: {"t", "c"}, selectBySlug: {"t", "s"}, selectByDomain: {"t", "d"}, selectSummaries: {"t"}, countConnections: {"t"}, deleteConnection: {"t", "c"}, deleteDomain: {"t", "d", "c"}, deleteDomains: {"t", "c"},
		// As [jobs.Due] reads them.
		`SELECT tenant_id, id, check_at FROM federation_connections WHERE check_at <= $1 ORDER BY check_at, tenant_id, id LIMIT 50`: {int64(1)},
	} {
		sqltest.UsesIndex(t, f.db, "", statement, args...)
	}
}

// Requests that change one connection at the same time all take effect.
func TestConcurrentUpdates(t *testing.T) {
	everywhere(t, func(f *fixture) {
		c := f.create(connection("a"))
		var running sync.WaitGroup
		for i := range 4 {
			running.Go(func() {
				_, err := f.Update(f.Context(), acme, c.ID, Change{Apply: func(c *Connection) error {
					c.Domains = append(c.Domains, fmt.Sprintf("d%d.example", i))
					return nil
				}})
				if err != nil {
					f.Error(err)
				}
			})
		}
		running.Wait()
		if got := f.get(c.ID); len(got.Domains) != 4 {
			f.Errorf("%v", got.Domains)
		}
	})
}

// Two requests cannot create the last connection of a tenant twice, nor the same slug.
func TestConcurrentCreations(t *testing.T) {
	everywhere(t, func(f *fixture) {
		var running sync.WaitGroup
		var succeeded atomic.Int32
		for range 4 {
			running.Go(func() {
				_, err := f.Create(f.Context(), acme, connection("a"))
				switch {
				case err == nil:
					succeeded.Add(1)
				case !errors.Is(err, ErrSlugTaken):
					f.Error(err)
				}
			})
		}
		running.Wait()
		if succeeded.Load() != 1 {
			f.Errorf("%d succeeded", succeeded.Load())
		}
	})
}

// The network of the server is not reached, neither by addresses nor by names.
func TestBlockedAddresses(t *testing.T) {
	f := open(t, sqlite(t), outbound.New(outbound.Config{}))
	for _, host := range []string{
		"127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "10.1.2.3", "169.254.169.254", "[fd00:ec2::254]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "100.64.0.1", "localhost", "metadata.google.internal",
	} {
		oidc := OIDC.Defaults()
		oidc.Slug, oidc.Name, oidc.ClientID, oidc.Issuer = "a", "A", "id", "https://"+host
		saml := SAML.Defaults()
		saml.Slug, saml.Name, saml.MetadataURL = "a", "A", "https://"+host+"/metadata"
		for _, c := range []Connection{oidc, saml} {
			_, err := f.Create(t.Context(), acme, c)
			var failed *MetadataError
			if !errors.As(err, &failed) || failed.Reason != string(outbound.BlockedAddress) || failed.URLHost != host {
				t.Errorf("%s %s: %v", c.Kind, host, err)
			}
		}
	}
	for _, url := range []string{"http://example.com", "https://user@example.com", "https://example.com:22", "https://0x7f.1", "https://2130706433", "ftp://example.com", "example.com", "https://example.com#a"} {
		c := OIDC.Defaults()
		c.Slug, c.Name, c.ClientID, c.Issuer = "a", "A", "id", url
		var field *FieldError
		if _, err := f.Create(t.Context(), acme, c); !errors.As(err, &field) || field.Field != "issuer" {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// Endpoints that were set are those of the provider, with the client and its secret.
func TestProvider(t *testing.T) {
	f := open(t, sqlite(t), outbound.New(outbound.Config{}))
	c := OIDC.Defaults()
	c.Slug, c.Name, c.ClientID, c.ClientSecret, c.Issuer, c.UseDiscovery = "a", "A", "id", NewSecret("secret"), "https://a.example.com", false
	c.Endpoints = Endpoints{Authorization: "https://a.example.com/a", Token: "https://a.example.com/t", JWKS: "https://a.example.com/k"}
	got, err := f.Provider(f.create(c))
	want := relyingparty.Provider{
		Kind: relyingparty.OIDC, Issuer: c.Issuer, ClientID: "id", Secret: "secret", Scopes: []string{"openid", "profile", "email"},
		Metadata: &relyingparty.Metadata{Issuer: c.Issuer, AuthorizationEndpoint: "https://a.example.com/a", TokenEndpoint: "https://a.example.com/t", JWKSURI: "https://a.example.com/k"},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	for _, url := range []string{"", "keys", "http://a.example.com/k", "https://localhost/k", "https://10.0.0.1/k"} {
		c.Slug, c.Endpoints.JWKS = "b", url
		var field *FieldError
		if _, err := f.Create(t.Context(), acme, c); !errors.As(err, &field) || field.Field != "jwks_uri" {
			t.Errorf("%q: %v", url, err)
		}
	}
}

// The directory is stored in lower case, and decides which issuers are accepted.
func TestMicrosoftTenant(t *testing.T) {
	f := open(t, sqlite(t), outbound.New(outbound.Config{}))
	c := Microsoft.Defaults()
	c.Slug, c.Name, c.ClientID, c.ClientSecret = "a", "A", "id", NewSecret("secret")
	for _, tenant := range []string{"", "contoso", "a/b.example", "contoso.example/", "{tenantid}"} {
		c.MicrosoftTenant = tenant
		var field *FieldError
		if _, err := f.Create(t.Context(), acme, c); !errors.As(err, &field) || field.Field != "tenant" {
			t.Errorf("%q: %v", tenant, err)
		}
	}
	for tenant, want := range map[string]string{
		"common": "common", "Organizations": "organizations", "consumers": "consumers", "Contoso.OnMicrosoft.com": "contoso.onmicrosoft.com",
		"ABCDEF00-1111-2222-3333-444444444444": "abcdef00-1111-2222-3333-444444444444",
	} {
		c.Slug, c.MicrosoftTenant = strings.ReplaceAll(want, ".", "-"), tenant
		created := f.create(c)
		p, err := f.Provider(f.get(created.ID))
		if err != nil || p.Directory != want || created.MicrosoftTenant != want {
			t.Errorf("%s: %q, %q, %v", tenant, p.Directory, created.MicrosoftTenant, err)
		}
	}
}

func TestIdentityProvider(t *testing.T) {
	now := time.Now()
	a, b := certificate(t, now.Add(time.Hour)), certificate(t, now.Add(2*time.Hour))
	named := `entityID="urn:idp"`
	full := entity(named+` validUntil="2999-01-01T00:00:00Z"`, key("signing", "\n  "+a[:20]+"\n"+a[20:])+key("encryption", b)+key("", b)+key("signing", a)+
		`<SingleLogoutService Binding="`+bindings+`HTTP-POST" Location="https://idp.example.com/slo" ResponseLocation="https://idp.example.com/done"/><NameIDFormat> urn:x </NameIDFormat>`+
		`<SingleSignOnService Binding="`+bindings+`SOAP" Location="https://idp.example.com/soap"/>`+sso)
	p, err := parseIdentityProvider([]byte(full), now, insecure)
	if err != nil {
		t.Fatal(err)
	}
	want := &serviceprovider.IdentityProvider{
		EntityID: "urn:idp", SingleSignOn: []serviceprovider.Service{{Binding: bindings + "HTTP-Redirect", Location: "https://idp.example.com/sso"}},
		ValidUntil:   time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC),
		SingleLogout: []serviceprovider.Service{{Binding: bindings + "HTTP-POST", Location: "https://idp.example.com/slo", ResponseLocation: "https://idp.example.com/done"}}, NameIDFormats: []string{"urn:x"}, Certificates: p.Certificates,
	}
	if diff := cmp.Diff(want, p); diff != "" || len(p.Certificates) != 2 {
		t.Errorf("%d certificates; %s", len(p.Certificates), diff)
	}
	if last := lastCertificate(p); last.NotAfter.Before(now.Add(time.Hour)) || len(last.Fingerprint) != 64 {
		t.Errorf("last: %v", last)
	}
	good := key("signing", a) + sso
	group := func(attributes string, entities ...string) string {
		return `<EntitiesDescriptor xmlns="urn:oasis:names:tc:SAML:2.0:metadata"` + attributes + `>` + strings.Join(entities, "") + `</EntitiesDescriptor>`
	}
	sp := `<EntityDescriptor entityID="urn:sp"><SPSSODescriptor ` + protocolAttr + `/></EntityDescriptor>`
	for name, text := range map[string]string{"a group": group("", sp, entity(named, good)), "a group of groups": group("", group("", entity(named, good)))} {
		if p, err := parseIdentityProvider([]byte(text), now, insecure); err != nil || p.EntityID != "urn:idp" {
			t.Errorf("%s: %v", name, err)
		}
	}
	var many strings.Builder
	for range 21 {
		many.WriteString(key("", certificate(t, now.Add(time.Hour))))
	}
	for name, text := range map[string]string{
		"empty": "", "no XML": "{}", "another root": "<a/>", "another namespace": `<EntityDescriptor entityID="a"/>`, "unclosed": full[:200],
		"a document type":   "<!DOCTYPE EntityDescriptor>" + full,
		"entities":          `<!DOCTYPE a [<!ENTITY b "c">]>` + strings.Replace(full, "urn:idp", "&b;", 1),
		"no entity id":      entity(``, good),
		"a long entity id":  entity(`entityID="`+strings.Repeat("x", 1025)+`"`, good),
		"expired":           entity(named+` validUntil="2020-01-01T00:00:00Z"`, good),
		"an expired group":  group(` validUntil="2020-01-01T00:00:00Z"`, entity(named, good)),
		"SAML 1.1":          strings.Replace(entity(named, good), "SAML:2.0:protocol", "SAML:1.1:protocol", 1),
		"two providers":     group("", entity(named, good), entity(`entityID="urn:b"`, good)),
		"service provider":  group("", sp),
		"no certificate":    entity(named, sso),
		"encryption only":   entity(named, key("encryption", a)+sso),
		"not a certificate": entity(named, key("", "AAAA")+sso), "not base64": entity(named, key("", "?")+sso),
		"many certificates": entity(named, many.String()+sso),
		"no sign-on":        entity(named, key("", a)),
		"a SOAP sign-on":    entity(named, key("", a)+strings.Replace(sso, "HTTP-Redirect", "SOAP", 1)),
		"a script":          entity(named, key("", a)+strings.Replace(sso, "https://idp.example.com/sso", "javascript:alert(1)", 1)),
		"a script later":    entity(named, key("", a)+strings.Replace(sso, "/>", ` ResponseLocation="javascript:alert(1)"/>`, 1)),
		"no location":       entity(named, key("", a)+strings.Replace(sso, "https://idp.example.com/sso", "", 1)),
		"large":             full + strings.Repeat(" ", MaxMetadata),
	} {
		if p, err := parseIdentityProvider([]byte(text), now, insecure); err == nil {
			t.Errorf("%s is accepted: %v", name, p)
		}
	}
}

// Whatever the document, parsing ends, and what is accepted can be used.
func FuzzIdentityProvider(f *testing.F) {
	c := certificate(f, time.Now().Add(time.Hour))
	f.Add(entity(`entityID="urn:idp"`, key("", c)+sso))
	f.Add(`<EntitiesDescriptor xmlns="urn:oasis:names:tc:SAML:2.0:metadata"><Signature><Child/></Signature></EntitiesDescriptor>`)
	f.Add(entity(`entityID="a" validUntil="x" cacheDuration="P1Y"`, sso))
	f.Add(`<?xml version="1.0" encoding="UTF-16"?><a>&lt;</a>`)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parseIdentityProvider([]byte(text), time.Now(), insecure)
		if err != nil {
			return
		}
		signers, err := p.Signers()
		if err != nil || len(signers) == 0 || p.EntityID == "" || len(p.SingleSignOn) == 0 || strings.Contains(strings.ToUpper(text), "<!DOCTYPE") && !strings.Contains(text, "<!--") && !strings.Contains(text, "CDATA") {
			t.Errorf("%v, %v", p, err)
		}
	})
}

// saml creates a connection to a provider of metadata.
func (f *fixture) saml(url string) Connection {
	f.Helper()
	c := SAML.Defaults()
	c.Slug, c.Name, c.MetadataURL = "partner", "Partner", url
	return f.create(c)
}

// refreshNow runs the job of a connection.
func (f *fixture) refreshNow(connectionID string) Connection {
	f.Helper()
	if err := f.refresh(f.Context(), acme.ID, connectionID); err != nil {
		f.Fatal(err)
	}
	return f.get(connectionID)
}

// Metadata is refreshed: certificates roll over, failures keep what there was, and the end of
// the last certificate is announced once for each.
func TestRefresh(t *testing.T) {
	everywhere(t, func(f *fixture) {
		now := time.Now()
		soon, later := certificate(t, now.Add(20*24*time.Hour)), certificate(t, now.AddDate(1, 0, 0))
		of := func(certificates ...string) string {
			text := ""
			for _, c := range certificates {
				text += key("signing", c)
			}
			return entity(`entityID="urn:idp"`, text+sso)
		}
		p := newProvider(t, of(soon))
		c := f.saml(p.URL)
		happened := func(want ...string) {
			f.Helper()
			if diff := cmp.Diff(append([]string{"connection_created"}, want...), f.events()); diff != "" {
				f.Error(diff)
			}
		}
		f.refreshNow(c.ID)
		f.refreshNow(c.ID)
		happened("certificate_expiring")
		p.publish(of(soon, later))
		if got := f.refreshNow(c.ID); len(got.Metadata.IdentityProvider.Certificates) != 2 {
			f.Errorf("after the new one: %v", got.Metadata)
		}
		p.publish(of(later))
		if got := f.refreshNow(c.ID); len(got.Metadata.IdentityProvider.Certificates) != 1 || !got.UpdatedAt.Equal(c.UpdatedAt) {
			f.Errorf("without the old one: %v", got.Metadata)
		}
		happened("certificate_expiring", "metadata_refreshed", "metadata_refreshed")

		p.publish("no metadata")
		first := f.refreshNow(c.ID)
		f.ahead.Add(int64(time.Hour))
		second := f.refreshNow(c.ID)
		if first.Metadata.FailingSince.IsZero() || !second.Metadata.FailingSince.Equal(first.Metadata.FailingSince) || second.Metadata.IdentityProvider == nil {
			f.Errorf("%v, %v", first.Metadata, second.Metadata)
		}
		p.publish(of(later))
		if got := f.refreshNow(c.ID); !got.Metadata.FailingSince.IsZero() {
			f.Errorf("%v", got.Metadata)
		}
		f.ahead.Store(int64(350 * 24 * time.Hour))
		f.refreshNow(c.ID)
		f.refreshNow(c.ID)
		happened("certificate_expiring", "metadata_refreshed", "metadata_refreshed", "certificate_expiring")
	})
}

// Each process queues what is due, and each connection is queued once.
func TestRefreshDue(t *testing.T) {
	everywhere(t, func(f *fixture) {
		p := newProvider(t, entity(`entityID="urn:idp"`, key("", certificate(t, time.Now().AddDate(1, 0, 0)))+sso))
		c := f.saml(p.URL)
		f.create(connection("never"))
		queued := func() (n int64) {
			f.Helper()
			if err := f.db.QueryRow(f.Context(), `SELECT COUNT(*) FROM jobs`).Scan(&n); err != nil {
				f.Fatal(err)
			}
			return n
		}
		step := func() {
			f.Helper()
			for more := true; more; {
				var err error
				if more, err = f.RefreshDue(f.Context()); err != nil {
					f.Fatal(err)
				}
			}
		}
		step()
		if queued() != 0 {
			f.Error("queued before it is due")
		}
		f.ahead.Add(int64(RefreshEvery))
		var both sync.WaitGroup
		for range 2 {
			both.Go(step)
		}
		both.Wait()
		if queued() != 1 {
			f.Errorf("%d jobs", queued())
		}
		f.refreshNow(c.ID)
		step()
		if queued() != 1 {
			f.Error("queued after the refresh")
		}
		if _, err := f.Disable(f.Context(), acme, c.ID); err != nil {
			f.Fatal(err)
		}
		f.ahead.Add(int64(2 * RefreshEvery))
		step()
		if queued() != 1 {
			f.Error("queued while disabled")
		}
		if _, err := f.Enable(f.Context(), acme, c.ID); err != nil {
			f.Fatal(err)
		}
		step()
		if queued() != 2 {
			f.Error("not queued when enabled again")
		}
	})
}

// A sign-in with an unknown key reads the metadata, but not every such sign-in.
func TestRefreshAtSignIn(t *testing.T) {
	f := open(t, sqlite(t), insecure)
	old, next := certificate(t, time.Now().AddDate(1, 0, 0)), certificate(t, time.Now().AddDate(1, 0, 0))
	p := newProvider(t, entity(`entityID="urn:idp"`, key("", old)+sso))
	c := f.saml(p.URL)
	p.publish(entity(`entityID="urn:idp"`, key("", old)+key("", next)+sso))
	for i, want := range []int{1, 2, 2} {
		if i == 1 {
			f.ahead.Add(int64(MinRefresh))
		}
		got, err := f.Refresh(t.Context(), acme.ID, c.ID)
		if err != nil || len(got.Metadata.IdentityProvider.Certificates) != want {
			t.Errorf("%d: %v, %v", i, got.Metadata.IdentityProvider, err)
		}
	}
	if p.requested() != 2 {
		t.Errorf("%d requests", p.requested())
	}
	// Concurrent sign-ins share one request, and a failure counts as one.
	for i, document := range []string{entity(`entityID="urn:idp"`, key("", next)+sso), "fails"} {
		p.publish(document)
		f.ahead.Add(int64(MinRefresh))
		var both sync.WaitGroup
		for range 10 {
			both.Go(func() {
				got, err := f.Refresh(t.Context(), acme.ID, c.ID)
				if err != nil || len(got.Metadata.IdentityProvider.Certificates) != 1 || got.Metadata.FailingSince.IsZero() != (i == 0) {
					t.Errorf("%q: %+v, %v", document, got.Metadata, err)
				}
			})
		}
		both.Wait()
		if p.requested() != 3+i {
			t.Errorf("%d requests after %q", p.requested(), document)
		}
	}
	if _, err := f.Refresh(t.Context(), acme.ID, "fed_x"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}

// Every setting of every kind is stored and read as it was set.
func TestStored(t *testing.T) {
	everywhere(t, func(f *fixture) {
		xml := entity(`entityID="urn:idp"`, key("", certificate(t, time.Now().AddDate(1, 0, 0)))+sso)
		for _, kind := range Kinds {
			c := kind.Defaults()
			c.Slug, c.Name = strings.ReplaceAll(string(kind), ".", "-"), "Provider"
			c.LinkPolicy, c.TrustEmail, c.SecondFactor, c.Domains = LinkNever, true, AcceptSecondFactor, []string{c.Slug + ".example"}
			c.AttributeMapping = map[string]string{"attributes.x": "$.x"}
			if kind == SAML {
				c.MetadataXML, c.AllowIDPInitiated = xml, true
			} else {
				c.ClientID, c.ClientSecret = "id", NewSecret("secret")
			}
			if kind == OIDC {
				c.Issuer, c.UseDiscovery, c.Endpoints = "https://a.example.com", false, Endpoints{"https://a.example.com/a", "https://a.example.com/t", "https://a.example.com/k", "", "https://a.example.com/e"}
			}
			created := f.create(c)
			if diff := cmp.Diff(created, f.get(created.ID), cmp.AllowUnexported(Connection{}, Secret{}), cmpopts.EquateEmpty()); diff != "" {
				f.Errorf("%s: %s", kind, diff)
			}
			if got, want := created.RequestedScopes(), kind.IsOpenID(); want != (len(got) > 0 && got[0] == "openid") {
				f.Errorf("%s requests %v", kind, got)
			}
		}
	})
}
