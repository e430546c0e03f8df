package signin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"stonetown/identity/authn"
	"stonetown/identity/external"
	"stonetown/identity/federation"
	"stonetown/identity/federation/relyingparty"
	"stonetown/identity/onetime"
	"stonetown/internal/eventlog"
	"stonetown/internal/outbound"
	"stonetown/internal/pgtest"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
	"stonetown/tuplestore/sqlstore"
)

// one is the only connection of a tenant.
type one struct {
	Connections
	federation.Connection
	provider relyingparty.Provider
}

func (o *one) Get(context.Context, string, string) (federation.Connection, error) {
	return o.Connection, nil
}

func (o *one) BySlug(context.Context, string, string) (federation.Connection, error) {
	return o.Connection, nil
}

func (o *one) Provider(federation.Connection) (relyingparty.Provider, error) { return o.provider, nil }

// withOne runs a test with a service that has one connection, whose provider has metadata at
// presets[Google].Issuer, on both databases.
func withOne(t *testing.T, test func(t *testing.T, s *Service, o *one)) {
	for name, url := range map[string]func(testing.TB) string{
		"SQLite":     func(t testing.TB) string { return "sqlite://" + filepath.Join(t.TempDir(), "test.db") },
		"PostgreSQL": pgtest.URL,
	} {
		t.Run(name, func(t *testing.T) {
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			db, err := sqldb.Open(t.Context(), sqldb.Config{URL: url(t)})
			must(err)
			t.Cleanup(func() { db.Close() })
			must(db.Migrate(t.Context(), Migrations(), onetime.Migrations(), eventlog.Migrations(), sqlstore.Migrations()))
			key, err := seal.NewKey(bytes.Repeat([]byte{1}, seal.KeySize))
			must(err)
			server := httptest.NewServer(http.NotFoundHandler())
			server.Close() // the provider cannot be reached
			presets := relyingparty.Presets()
			google := presets[relyingparty.Google]
			google.Issuer = server.URL
			presets[relyingparty.Google] = google
			providers, err := relyingparty.New(relyingparty.Config{Client: outbound.New(outbound.Config{AllowInsecure: true}), Presets: presets})
			must(err)
			o := &one{Connection: federation.Google.Defaults(), provider: relyingparty.Provider{Kind: relyingparty.Google, ClientID: "id"}}
			o.ID, o.TenantID, o.Slug = "fed_a", tenant, "google"
			test(t, New(Config{
				DB: db, Seal: key, Connections: o, Providers: providers, Clock: time.Now, Logger: slog.New(slog.DiscardHandler),
			}), o)
		})
	}
}

// A test that cannot start at the provider is completed, with the reason.
func TestTestThatCannotStart(t *testing.T) {
	withOne(t, func(t *testing.T, s *Service, o *one) {
		begun, secret, _, err := s.NewTest(t.Context(), tenant, o.ID)
		if err != nil {
			t.Fatal(err)
		}
		at := federation.Tenant{ID: tenant, BaseURL: "https://a.test"}
		if _, err := s.BeginTest(t.Context(), at, "other", secret); err != ErrTestExpired {
			t.Errorf("at another connection: %v", err)
		}
		begun, secret, _, err = s.NewTest(t.Context(), tenant, o.ID)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.BeginTest(t.Context(), at, o.Slug, secret)
		if failed, ok := err.(*Failure); !ok || failed.Reason != string(relyingparty.Unreachable) {
			t.Fatalf("start: %v", err)
		}
		test, err := s.Test(t.Context(), tenant, o.ID, begun.ID)
		if err != nil || test.State != TestCompleted || test.Report.Success || test.Report.Claims != nil || len(test.Report.Warnings) != 1 || test.Report.Warnings[0].Code != "unreachable" {
			t.Errorf("%+v %+v, %v", test, test.Report, err)
		}
		var events int64
		if err := s.DB.QueryRow(t.Context(), `SELECT COUNT(*) FROM events WHERE type = 'federation.connection_tested'`).Scan(&events); err != nil || events != 1 {
			t.Errorf("%d events, %v", events, err)
		}
		if _, err := s.BeginTest(t.Context(), at, o.Slug, secret); err != ErrTestExpired {
			t.Errorf("again: %v", err)
		}
	})
}

// The demands of an application are those of the request to the provider.
func TestDemands(t *testing.T) {
	withOne(t, func(t *testing.T, s *Service, o *one) {
		at := federation.Tenant{ID: tenant, BaseURL: "https://a.test"}
		o.provider = relyingparty.Provider{Kind: relyingparty.OIDC, Issuer: "https://op.test", ClientID: "id", Metadata: &relyingparty.Metadata{
			Issuer: "https://op.test", AuthorizationEndpoint: "https://op.test/a", TokenEndpoint: "https://op.test/t", JWKSURI: "https://op.test/k",
			ACRValues: []string{"1", "aal2", "https://refeds.org/profile/mfa"},
		}}
		hour := time.Hour
		for _, test := range []struct {
			what   string
			kind   federation.Kind
			accept bool
			d      Demands
			want   string
		}{
			{"nothing", federation.OIDC, true, Demands{}, "||"},
			{"fresh", federation.OIDC, true, Demands{Fresh: true}, "login||"},
			{"max_age", federation.OIDC, true, Demands{MaxAge: &hour}, "|3600|"},
			{"max_age where it is not stated", federation.Microsoft, true, Demands{MaxAge: &hour}, "login||"},
			{"second factor", federation.OIDC, true, Demands{SecondFactor: true}, "||aal2 https://refeds.org/profile/mfa"},
			{"second factor that is not accepted", federation.OIDC, false, Demands{SecondFactor: true}, "||"},
		} {
			o.Kind, o.SecondFactor = test.kind, federation.AskSecondFactor
			if test.accept {
				o.SecondFactor = federation.AcceptSecondFactor
			}
			b, err := s.Begin(t.Context(), at, Request{Slug: o.Slug, Demands: test.d})
			if err != nil {
				t.Fatal(err)
			}
			u, err := url.Parse(b.URL)
			if err != nil {
				t.Fatal(err)
			}
			q := u.Query()
			if got := strings.Join([]string{q.Get("prompt"), q.Get("max_age"), q.Get("acr_values")}, "|"); got != test.want {
				t.Errorf("%s: %q, want %q", test.what, got, test.want)
			}
		}
	})
}

// Starts and callbacks are observed with their outcome.
func TestOutcomes(t *testing.T) {
	withOne(t, func(t *testing.T, s *Service, o *one) {
		var got []string
		s.Observe = func(kind federation.Kind, outcome string) { got = append(got, string(kind)+" "+outcome) }
		at := federation.Tenant{ID: tenant, BaseURL: "https://a.test"}
		if _, err := s.Begin(t.Context(), at, Request{Slug: o.Slug}); err == nil {
			t.Error("the provider cannot be reached")
		}
		o.provider = relyingparty.Provider{Kind: relyingparty.GitHub, ClientID: "id"}
		o.Kind = federation.GitHub
		b, err := s.Begin(t.Context(), at, Request{Slug: o.Slug})
		if err != nil {
			t.Fatal(err)
		}
		complete := func(secret string, q url.Values) {
			t.Helper()
			if _, err := s.Complete(t.Context(), authn.Tenant{ID: tenant, BaseURL: "https://a.test"}, Answer{Slug: o.Slug, Secret: secret, Parameters: q}, authn.Device{}); err == nil {
				t.Error("there is no error")
			}
		}
		complete("unknown", nil) // of no connection
		complete(b.Secret, url.Values{"error": {"access_denied"}, "state": {b.State}})
		b, err = s.Begin(t.Context(), at, Request{Slug: o.Slug})
		if err != nil {
			t.Fatal(err)
		}
		o.State = federation.Disabled
		complete(b.Secret, nil)
		want := []string{"social.google unreachable", "social.github started", "social.github access_denied", "social.github started", "social.github disabled"}
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
	for err, want := range map[error]string{
		ErrExpired: "expired", ErrDisabled: "disabled", external.ErrTaken: "refused", fmt.Errorf("sign in: %w", authn.ErrNotProvisioned): "refused", errors.New("x"): "internal_error",
	} {
		if got := outcomeOf(err); got != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
}

func TestAuthTime(t *testing.T) {
	begun := time.Date(2026, 11, 22, 12, 0, 0, 500_000_000, time.UTC)
	now := begun.Add(time.Minute)
	for _, test := range []struct {
		what         string
		stated, want time.Time
	}{
		{"not stated", time.Time{}, now},
		{"during the sign-in", begun.Add(30 * time.Second), begun.Add(30 * time.Second)},
		{"in the second of its start", begun.Truncate(time.Second), begun},
		{"by a slow clock", begun.Add(-relyingparty.Skew), begun},
		{"before", begun.Add(-relyingparty.Skew - time.Second), begun.Add(-relyingparty.Skew - time.Second)},
		{"in the future", now.Add(time.Second), now},
	} {
		if got := authTime(test.stated, begun, now); !got.Equal(test.want) {
			t.Errorf("%s: %v, want %v", test.what, got, test.want)
		}
	}
}
