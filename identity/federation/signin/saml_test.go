package signin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"stonetown/identity/authn"
	"stonetown/identity/external"
	"stonetown/identity/federation"
	"stonetown/identity/federation/serviceprovider"
	"stonetown/identity/onetime"
	"stonetown/identity/session"
	"stonetown/internal/eventlog"
	"stonetown/internal/pgtest"
	"stonetown/internal/samlprotocol/samltest"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
	"stonetown/tuplestore/sqlstore"
)

// partner is a service with one SAML connection, and its identity provider.
type partner struct {
	testing.TB
	*Service
	idp        *samltest.IdentityProvider
	connection federation.Connection
	published  func() string // the metadata at the next refresh
	refreshes  int
	assertions []authn.Assertion // of sign-ins
	links      []external.Identity
	keys       []serviceprovider.Key
	now        time.Time
	log        bytes.Buffer
}

var acme = federation.Tenant{ID: tenant, BaseURL: "https://acme.example"}

// connections is the registry of the service.
type connections struct {
	Connections
	*partner
}

func (c connections) Get(_ context.Context, tenantID, connectionID string) (federation.Connection, error) {
	if tenantID != tenant || connectionID != c.connection.ID {
		return federation.Connection{}, federation.ErrNotFound
	}
	return c.connection, nil
}

func (c connections) BySlug(ctx context.Context, tenantID, slug string) (federation.Connection, error) {
	if slug != c.connection.Slug {
		return federation.Connection{}, federation.ErrNotFound
	}
	return c.Get(ctx, tenantID, c.connection.ID)
}

func (c connections) Refresh(ctx context.Context, tenantID, connectionID string) (federation.Connection, error) {
	c.refreshes++
	c.read(c.published())
	return c.Get(ctx, tenantID, connectionID)
}

// accounts record the sign-ins and links.
type accounts struct {
	Accounts
	*partner
}

func (a accounts) SignInFederated(_ context.Context, _ authn.Tenant, s authn.Assertion, _ authn.Device) (authn.Result, error) {
	a.assertions = append(a.assertions, s)
	return authn.Result{Status: authn.LinkRequired}, nil
}

func (a accounts) Link(_ context.Context, i external.Identity) error {
	a.links = append(a.links, i)
	return nil
}

// serviceKeys are the keys of the service provider.
type serviceKeys struct{ *partner }

func (k serviceKeys) Keys(context.Context, string) ([]serviceprovider.Key, error) {
	return k.keys, nil
}

// read stores metadata with the connection.
func (p *partner) read(metadata string) {
	p.Helper()
	idp, err := serviceprovider.ParseMetadata([]byte(metadata), p.now)
	p.must(err)
	p.connection.Metadata.IdentityProvider = idp
}

func (p *partner) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

var partnerKey = sync.OnceValue(func() serviceprovider.Key { return samltest.RSA(2048) })

func withPartner(t *testing.T, test func(p *partner)) {
	for name, url := range map[string]func(testing.TB) string{
		"SQLite":     func(t testing.TB) string { return "sqlite://" + filepath.Join(t.TempDir(), "test.db") },
		"PostgreSQL": pgtest.URL,
	} {
		t.Run(name, func(t *testing.T) {
			p := &partner{TB: t, now: samltest.Now, connection: federation.SAML.Defaults(), keys: []serviceprovider.Key{samltest.RSA(2048)}}
			p.idp = &samltest.IdentityProvider{EntityID: "https://idp.example/metadata", SSO: "https://idp.example/sso", Key: partnerKey(), Clock: func() time.Time { return p.now }}
			p.published = func() string { return p.idp.Metadata() }
			p.connection.TenantID, p.connection.ID, p.connection.Slug = tenant, "fed_partner", "partner"
			p.read(p.idp.Metadata())
			db, err := sqldb.Open(t.Context(), sqldb.Config{URL: url(t)})
			p.must(err)
			t.Cleanup(func() { db.Close() })
			p.must(db.Migrate(t.Context(), onetime.Migrations(), eventlog.Migrations(), sqlstore.Migrations(), Migrations()))
			key, err := seal.NewKey(bytes.Repeat([]byte{1}, seal.KeySize))
			p.must(err)
			p.Service = New(Config{
				DB: db, Seal: key, Connections: connections{nil, p}, Accounts: accounts{partner: p}, Keys: serviceKeys{p},
				Clock: func() time.Time { return p.now }, Logger: slog.New(slog.NewTextHandler(&p.log, nil)),
			})
			test(p)
		})
	}
}

// begin begins a sign-in, and returns the request as the identity provider reads it.
func (p *partner) begin(r Request) (Begun, samltest.Request) {
	p.Helper()
	r.Slug = "partner"
	b, err := p.Begin(p.Context(), acme, r)
	p.must(err)
	return b, p.idp.Read(p, b.URL, b.Form)
}

func (p *partner) complete(secret string, form url.Values) (Outcome, error) {
	return p.Complete(p.Context(), authn.Tenant{ID: acme.ID, BaseURL: acme.BaseURL}, Answer{Slug: "partner", Secret: secret, Parameters: form}, authn.Device{})
}

// wantFailure fails the test unless a sign-in failed for a reason, without a statement to package
// authn, and with the detail in the log.
func (p *partner) wantFailure(what string, err error, class serviceprovider.Class, detail string) {
	p.Helper()
	failed, ok := errors.AsType[*Failure](err)
	if !ok || failed.Reason != string(class) || !strings.Contains(failed.Detail, detail) {
		p.Errorf("%s: %v (%+v), want %s, %q", what, err, failed, class, detail)
	}
	if len(p.assertions)+len(p.links) > 0 {
		p.Errorf("%s: signed in: %+v %+v", what, p.assertions, p.links)
	}
	if !strings.Contains(p.log.String(), detail) {
		p.Errorf("%s: the log is %s", what, p.log.String())
	}
	p.log.Reset()
}

// signedIn returns the one sign-in since the last call.
func (p *partner) signedIn() authn.Assertion {
	p.Helper()
	if len(p.assertions) != 1 {
		p.Fatalf("%d sign-ins", len(p.assertions))
	}
	a := p.assertions[0]
	p.assertions = nil
	return a
}

var ann = map[string][]string{"mail": {"ann@example.com"}, "displayName": {"Ann Example"}, "memberOf": {"staff", "ops"}}

// A user signs in by each binding, once.
func TestSAMLSignIn(t *testing.T) {
	withPartner(t, func(p *partner) {
		for _, binding := range []string{serviceprovider.Redirect, serviceprovider.Post} {
			p.idp.Bindings = []string{binding}
			p.read(p.idp.Metadata())
			b, r := p.begin(Request{Next: "/account?x=1"})
			if (b.Form != nil) != (binding == serviceprovider.Post) || r.RelayState != b.State || r.ACS != "https://acme.example/saml/sp/partner/acs" || r.Issuer != "https://acme.example/saml/sp/partner/metadata" {
				p.Errorf("%+v %+v", b, r)
			}
			form := p.idp.Respond(p, r, samltest.Response{Attributes: ann, Session: "session-1"})
			out, err := p.complete(b.Secret, form)
			p.must(err)
			a := p.signedIn()
			var name serviceprovider.NameID
			p.must(json.Unmarshal([]byte(a.Hint), &name))
			if out.Next != "/account?x=1" || a.Next != out.Next || a.Subject != "persistent ann" || a.Email != "ann@example.com" || a.EmailVerified || a.Profile.Name != "Ann Example" ||
				a.ProviderID != "session-1" || name.Value != "ann" || a.SecondFactor || !a.Provision || a.ConnectionID != "fed_partner" {
				p.Errorf("%+v %+v", out, a)
			}
			if _, err := p.complete(b.Secret, form); !errors.Is(err, ErrExpired) {
				p.Errorf("again: %v", err)
			}
		}
	})
}

// A response completes only the sign-in for which it was made, in the browser that began it.
func TestSAMLResponseOfAnother(t *testing.T) {
	withPartner(t, func(p *partner) {
		_, theirs := p.begin(Request{})
		mine, _ := p.begin(Request{})
		_, err := p.complete(mine.Secret, p.idp.Respond(p, theirs, samltest.Response{}))
		p.wantFailure("another RelayState", err, serviceprovider.Stale, "RelayState")
		mine, r := p.begin(Request{})
		_, err = p.complete(mine.Secret, p.idp.Respond(p, r, samltest.Response{InResponseTo: theirs.ID}))
		p.wantFailure("another InResponseTo", err, serviceprovider.Stale, "InResponseTo")
		mine, r = p.begin(Request{})
		_, err = p.complete(mine.Secret, p.idp.Respond(p, r, samltest.Response{InResponseTo: "-"}))
		p.wantFailure("no InResponseTo", err, serviceprovider.Stale, "InResponseTo")
		mine, r = p.begin(Request{})
		_, err = p.complete(mine.Secret, p.idp.Respond(p, r, samltest.Response{Audience: "https://other.example"}))
		p.wantFailure("another audience", err, serviceprovider.Invalid, "audience")
		mine, r = p.begin(Request{})
		_, err = p.complete(mine.Secret, p.idp.Respond(p, r, samltest.Response{Status: "urn:oasis:names:tc:SAML:2.0:status:AuthnFailed"}))
		p.wantFailure("denied", err, serviceprovider.Denied, "sent by the provider")
		for _, secret := range []string{"x", mine.Secret} {
			if _, err := p.complete(secret, p.idp.Respond(p, r, samltest.Response{})); !errors.Is(err, ErrExpired) {
				p.Errorf("secret %q: %v", secret, err)
			}
		}
		b, r := p.begin(Request{})
		p.now = p.now.Add(For)
		if _, err := p.complete(b.Secret, p.idp.Respond(p, r, samltest.Response{})); !errors.Is(err, ErrExpired) {
			p.Errorf("after the lifetime: %v", err)
		}
	})
}

// The session is as old as the authentication, unless the application demands a new one.
func TestSAMLAuthTime(t *testing.T) {
	withPartner(t, func(p *partner) {
		old := samltest.Response{Age: time.Hour}
		b, r := p.begin(Request{})
		_, err := p.complete(b.Secret, p.idp.Respond(p, r, old))
		p.must(err)
		if a := p.signedIn(); r.ForceAuthn || !a.AuthTime.Equal(p.now.Add(-time.Hour)) {
			p.Errorf("%+v %v", r, a.AuthTime)
		}
		for _, d := range []Demands{{Fresh: true}, {MaxAge: new(time.Minute)}} {
			b, r := p.begin(Request{Demands: d})
			if !r.ForceAuthn {
				p.Errorf("%+v: %+v", d, r)
			}
			_, err := p.complete(b.Secret, p.idp.Respond(p, r, old))
			p.wantFailure("an old authentication", err, serviceprovider.Invalid, "new authentication")
			b, r = p.begin(Request{Demands: d})
			_, err = p.complete(b.Secret, p.idp.Respond(p, r, samltest.Response{}))
			p.must(err)
			if a := p.signedIn(); !a.AuthTime.Equal(p.now) {
				p.Error(a.AuthTime)
			}
		}
	})
}

// A disabled connection refuses both steps, and responses to no request; a test of it works.
func TestSAMLDisabled(t *testing.T) {
	withPartner(t, func(p *partner) {
		p.connection.AllowIDPInitiated = true
		b, r := p.begin(Request{})
		p.connection.State = federation.Disabled
		_, err := p.Begin(p.Context(), acme, Request{Slug: "partner"})
		_, completed := p.complete(b.Secret, p.idp.Respond(p, r, samltest.Response{}))
		_, unsolicited := p.complete("", p.idp.Respond(p, samltest.Request{ACS: r.ACS, Issuer: r.Issuer}, samltest.Response{}))
		for step, err := range map[string]error{"begin": err, "complete": completed, "unsolicited": unsolicited} {
			if !errors.Is(err, ErrDisabled) {
				p.Errorf("%s: %v", step, err)
			}
		}
		if len(p.assertions) > 0 {
			p.Errorf("signed in: %+v", p.assertions)
		}
		test, secret, _, err := p.NewTest(p.Context(), tenant, p.connection.ID)
		p.must(err)
		b, err = p.BeginTest(p.Context(), acme, "partner", secret)
		p.must(err)
		out, err := p.complete(b.Secret, p.idp.Respond(p, p.idp.Read(p, b.URL, b.Form), samltest.Response{Attributes: ann}))
		p.must(err)
		if out.Test == nil || out.Test.ID != test.ID || !out.Test.Report.Success || len(p.assertions) > 0 {
			p.Errorf("%+v", out)
		}
	})
}

// Responses to no request sign in only where the connection allows them. They complete neither a link
// nor a test.
func TestSAMLUnsolicited(t *testing.T) {
	withPartner(t, func(p *partner) {
		_, r := p.begin(Request{})
		unsolicited := func(change samltest.Response) url.Values {
			form := p.idp.Respond(p, samltest.Request{ACS: r.ACS, Issuer: r.Issuer}, change)
			form.Set("RelayState", "https://evil.example")
			return form
		}
		_, err := p.complete("", unsolicited(samltest.Response{}))
		p.wantFailure("not allowed", err, serviceprovider.Stale, "does not allow")
		p.connection.AllowIDPInitiated = true
		_, err = p.complete("", p.idp.Respond(p, r, samltest.Response{}))
		p.wantFailure("the response to a request", err, serviceprovider.Stale, "InResponseTo")

		form := unsolicited(samltest.Response{Attributes: ann})
		out, err := p.complete("", form)
		p.must(err)
		if a := p.signedIn(); out.Next != "" || a.Next != "" || out.Test != nil || a.Subject != "persistent ann" {
			p.Errorf("%+v %+v", out, a)
		}
		_, err = p.complete("", form)
		p.wantFailure("replayed", err, serviceprovider.Stale, "used before")

		for _, a := range []Answer{{Slug: "partner", Parameters: unsolicited(samltest.Response{})}, {Slug: "other", Parameters: unsolicited(samltest.Response{})}} {
			if err := p.CompleteLink(p.Context(), acme, a, session.Session{ID: "ses_1", UserID: "usr_1"}); !errors.Is(err, ErrExpired) {
				p.Errorf("link: %v", err)
			}
		}
		_, err = p.Complete(p.Context(), authn.Tenant{ID: acme.ID, BaseURL: acme.BaseURL}, Answer{Slug: "other", Parameters: form}, authn.Device{})
		if !errors.Is(err, ErrExpired) {
			p.Errorf("another connection: %v", err)
		}
		p.connection.Kind = federation.OIDC
		if _, err := p.complete("", form); !errors.Is(err, ErrExpired) {
			p.Errorf("another kind: %v", err)
		}
	})
}

// Of many processes that receive an assertion, one accepts it. It is forgotten when it has expired.
func TestSAMLReplay(t *testing.T) {
	withPartner(t, func(p *partner) {
		p.connection.AllowIDPInitiated = true
		c := p.connection
		i := serviceprovider.Identity{AssertionID: "_a", NotOnOrAfter: p.now.Add(time.Minute)}
		results := make(chan error, 10)
		for range cap(results) {
			go func() { results <- p.useAssertion(p.Context(), c, i) }()
		}
		accepted := 0
		for range cap(results) {
			err := <-results
			if failed, ok := errors.AsType[*serviceprovider.Error](err); err == nil {
				accepted++
			} else if !ok || failed.Class != serviceprovider.Stale {
				p.Error(err)
			}
		}
		if accepted != 1 {
			p.Errorf("%d accepted", accepted)
		}
		c.ID = "fed_other"
		p.must(p.useAssertion(p.Context(), c, i)) // of another identity provider
		rows := func() (n int64) {
			p.must(p.DB.QueryRow(p.Context(), `SELECT COUNT(*) FROM federation_assertions`).Scan(&n))
			return n
		}
		for _, want := range []int64{2, 0} {
			p.must(p.deleteExpired(p.Context()))
			if got := rows(); got != want {
				p.Errorf("%d rows, want %d", got, want)
			}
			p.now = i.NotOnOrAfter
		}
	})
}

// A link belongs to the session in which it began.
func TestSAMLLink(t *testing.T) {
	withPartner(t, func(p *partner) {
		current := session.Session{ID: "ses_1", UserID: "usr_1"}
		link := func(by session.Session) error {
			b, r := p.begin(Request{SessionID: current.ID})
			form := p.idp.Respond(p, r, samltest.Response{Attributes: ann})
			if _, err := p.complete(b.Secret, form); !errors.Is(err, ErrExpired) {
				p.Errorf("as a sign-in: %v", err)
			}
			return p.CompleteLink(p.Context(), acme, Answer{Slug: "partner", Secret: b.Secret, Parameters: form}, by)
		}
		if err := link(session.Session{ID: "ses_2", UserID: "usr_1"}); !errors.Is(err, ErrExpired) {
			p.Errorf("another session: %v", err)
		}
		p.must(link(current))
		want := []external.Identity{{TenantID: tenant, UserID: "usr_1", ConnectionID: "fed_partner", Slug: "partner", Kind: "saml", Subject: "persistent ann", Email: "ann@example.com"}}
		if diff := cmp.Diff(want, p.links); diff != "" {
			p.Error(diff)
		}
	})
}

// A key that the metadata does not have is looked for once.
func TestSAMLRollover(t *testing.T) {
	withPartner(t, func(p *partner) {
		p.idp.Key = samltest.RSA(2048)
		b, r := p.begin(Request{})
		_, err := p.complete(b.Secret, p.idp.Respond(p, r, samltest.Response{}))
		p.must(err)
		p.signedIn()
		b, r = p.begin(Request{})
		_, err = p.complete(b.Secret, p.idp.Respond(p, r, samltest.Response{}))
		p.must(err)
		p.signedIn()
		if p.refreshes != 1 {
			p.Errorf("%d refreshes", p.refreshes)
		}
		published := p.idp.Metadata()
		p.published = func() string { return published }
		p.idp.Key = samltest.RSA(2048)
		b, r = p.begin(Request{})
		_, err = p.complete(b.Secret, p.idp.Respond(p, r, samltest.Response{}))
		p.wantFailure("an unknown key", err, serviceprovider.Invalid, "certificate")
		if p.refreshes != 2 {
			p.Errorf("%d refreshes", p.refreshes)
		}
	})
}

// The subject is the NameID with its format, and with qualifiers that are not the default.
func TestSAMLSubject(t *testing.T) {
	const sp, idp = "https://acme.example/saml/sp/partner/metadata", "https://idp.example/metadata"
	p := &serviceprovider.Provider{EntityID: sp, IdentityProvider: serviceprovider.IdentityProvider{EntityID: idp}}
	for _, test := range []struct {
		name     serviceprovider.NameID
		want     string // empty: refused
		warnings int
	}{
		{serviceprovider.NameID{Value: "a b", Format: persistent}, "persistent a b", 0},
		{serviceprovider.NameID{Value: "a", Format: persistent, NameQualifier: idp, SPNameQualifier: sp}, "persistent a", 0},
		{serviceprovider.NameID{Value: "a", Format: persistent, NameQualifier: "x"}, "persistent a\nx\n", 0},
		{serviceprovider.NameID{Value: "a", Format: persistent, SPNameQualifier: "x"}, "persistent a\n\nx", 0},
		{serviceprovider.NameID{Value: "a", Format: persistent, NameQualifier: sp, SPNameQualifier: idp}, "persistent a\n" + sp + "\n" + idp, 0},
		{serviceprovider.NameID{Value: "ann@example.com", Format: emailAddress}, "emailAddress ann@example.com", 1},
		{serviceprovider.NameID{Value: "ann@example.com"}, "unspecified ann@example.com", 1},
		{serviceprovider.NameID{Value: "ann@example.com", Format: unspecified}, "unspecified ann@example.com", 1},
		{serviceprovider.NameID{Value: "ann", Format: "urn:x:y"}, "urn:x:y ann", 1},
		{serviceprovider.NameID{Value: "ann", Format: persistent + ":x"}, persistent + ":x ann", 1},
		{serviceprovider.NameID{Value: "ann", Format: "persistent"}, "", 1},
		{serviceprovider.NameID{Value: "ann", Format: "urn:x persistent"}, "", 1},
		{serviceprovider.NameID{Value: "ann", Format: transient}, "", 0},
		{serviceprovider.NameID{Value: "ann", Format: formats11 + "transient"}, "", 1},
		{serviceprovider.NameID{Value: strings.Repeat("x", maxSubject), Format: persistent}, "", 0},
	} {
		got, err := subjectOf(p, test.name)
		if failed, ok := errors.AsType[*serviceprovider.Error](err); got != test.want || (err != nil) != (test.want == "") || err != nil && (!ok || failed.Class != serviceprovider.Misconfigured) {
			t.Errorf("%+v: %q, %v", test.name, got, err)
		}
		if got := nameWarnings(test.name); len(got) != test.warnings {
			t.Errorf("%+v: %v", test.name, got)
		}
	}
}

// A transient NameID signs nobody in. The report of a test says so, with the claims.
func TestSAMLTransient(t *testing.T) {
	withPartner(t, func(p *partner) {
		response := samltest.Response{NameID: serviceprovider.NameID{Value: "_once", Format: transient}, Attributes: ann}
		b, r := p.begin(Request{})
		_, err := p.complete(b.Secret, p.idp.Respond(p, r, response))
		p.wantFailure("transient", err, serviceprovider.Misconfigured, "transient")

		for _, success := range []bool{false, true} {
			_, secret, _, err := p.NewTest(p.Context(), tenant, p.connection.ID)
			p.must(err)
			b, err := p.BeginTest(p.Context(), acme, "partner", secret)
			p.must(err)
			if _, err := p.BeginTest(p.Context(), acme, "partner", secret); !errors.Is(err, ErrTestExpired) {
				p.Errorf("begun again: %v", err)
			}
			out, err := p.complete(b.Secret, p.idp.Respond(p, p.idp.Read(p, b.URL, b.Form), response))
			p.must(err)
			stored, err := p.Test(p.Context(), tenant, p.connection.ID, out.Test.ID)
			p.must(err)
			var codes []string
			for _, w := range stored.Report.Warnings {
				codes = append(codes, w.Code)
			}
			if stored.Report.Success != success || !reflect.DeepEqual(stored.Report.Claims["mail"], []any{"ann@example.com"}) || len(p.assertions) > 0 {
				p.Errorf("%+v", stored.Report)
			}
			if want := []string{"misconfigured"}; !success && !slices.Equal(codes, want) {
				p.Errorf("warnings: %v", codes)
			}
			if success && (!slices.Contains(codes, "reassignable") || !slices.Contains(codes, "unverified") || !reflect.DeepEqual(stored.Report.Claims[emailAddress], []any{"ann@example.com"})) {
				p.Errorf("%v %v", codes, stored.Report.Claims)
			}
			response.NameID = serviceprovider.NameID{Value: "ann@example.com", Format: emailAddress}
		}
	})
}

// An address in the NameID is the address of a user whose attributes have none.
func TestSAMLEmail(t *testing.T) {
	withPartner(t, func(p *partner) {
		for _, test := range []struct {
			response samltest.Response
			trust    bool
			email    string
		}{
			{samltest.Response{NameID: serviceprovider.NameID{Value: "ann@example.com", Format: emailAddress}}, true, "ann@example.com"},
			{samltest.Response{NameID: serviceprovider.NameID{Value: "x@example.com", Format: emailAddress}, Attributes: ann}, false, "ann@example.com"},
			{samltest.Response{NameID: serviceprovider.NameID{Value: "x@example.com", Format: unspecified}}, true, ""},
		} {
			p.connection.TrustEmail = test.trust
			b, r := p.begin(Request{})
			_, err := p.complete(b.Secret, p.idp.Respond(p, r, test.response))
			p.must(err)
			if a := p.signedIn(); a.Email != test.email || a.EmailVerified != (test.trust && test.email != "") {
				p.Errorf("%+v: %q, %t", test.response, a.Email, a.EmailVerified)
			}
		}
	})
}

// The class of the authentication, or Microsoft's attribute of its methods, can state a second factor.
func TestSAMLSecondFactor(t *testing.T) {
	withPartner(t, func(p *partner) {
		const classes = "urn:oasis:names:tc:SAML:2.0:ac:classes:"
		const microsoft = "http://schemas.microsoft.com/claims/multipleauthn"
		for _, test := range []struct {
			class, method string
			want          bool
		}{
			{classes + "Password", "", false},
			{classes + "TimeSyncToken", "", false},
			{classes + "MobileOneFactorContract", "", false},
			{classes + "MobileTwoFactorContract", "", true},
			{classes + "SmartcardPKI", "", true},
			{"https://refeds.org/profile/mfa", "", true},
			{"https://refeds.org/profile/sfa", "", false},
			{microsoft, "", true},
			{classes + "Password", microsoft, true},
			{classes + "Password", "mfa", false},
		} {
			for _, policy := range []federation.SecondFactor{federation.AcceptSecondFactor, federation.AskSecondFactor} {
				p.connection.SecondFactor = policy
				b, r := p.begin(Request{})
				_, err := p.complete(b.Secret, p.idp.Respond(p, r, samltest.Response{Context: test.class, Attributes: map[string][]string{microsoftMethods: {"x", test.method}}}))
				p.must(err)
				if a := p.signedIn(); a.SecondFactor != (test.want && policy == federation.AcceptSecondFactor) {
					p.Errorf("%s %s: %t", test.class, test.method, a.SecondFactor)
				}
			}
		}
	})
}

// The metadata announces all keys, and asks for persistent NameIDs.
func TestSAMLMetadata(t *testing.T) {
	withPartner(t, func(p *partner) {
		p.connection.State = federation.Disabled
		document, err := p.Metadata(p.Context(), acme, "partner")
		p.must(err)
		for _, want := range []string{`entityID="https://acme.example/saml/sp/partner/metadata"`, `AuthnRequestsSigned="true"`, `Location="https://acme.example/saml/sp/partner/acs"`, `<md:NameIDFormat>` + persistent + `<`} {
			if !strings.Contains(string(document), want) {
				p.Errorf("no %s in %s", want, document)
			}
		}
		_, missing := p.Metadata(p.Context(), acme, "other")
		p.connection.Kind = federation.OIDC
		_, openID := p.Metadata(p.Context(), acme, "partner")
		if !errors.Is(missing, federation.ErrNotFound) || !errors.Is(openID, federation.ErrNotFound) {
			p.Errorf("%v, %v", missing, openID)
		}
	})
}

// An identity provider that requires what the connection does not have fails at the start.
func TestSAMLMisconfigured(t *testing.T) {
	withPartner(t, func(p *partner) {
		p.keys = nil
		p.connection.Metadata.IdentityProvider.WantRequestsSigned = true
		_, err := p.Begin(p.Context(), acme, Request{Slug: "partner"})
		p.wantFailure("no key", err, serviceprovider.Misconfigured, "signed requests")
		_, secret, _, err := p.NewTest(p.Context(), tenant, p.connection.ID)
		p.must(err)
		if _, err := p.BeginTest(p.Context(), acme, "partner", secret); err == nil {
			p.Error("the test begins")
		}
	})
}
