package authn

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"

	"stonetown/engine/authority"
	"stonetown/identity"
	"stonetown/identity/external"
	"stonetown/identity/factor"
	"stonetown/identity/onetime"
	"stonetown/identity/password"
	"stonetown/identity/password/breached"
	"stonetown/identity/session"
	"stonetown/internal/eventlog"
	"stonetown/internal/geo"
	"stonetown/internal/jobs"
	"stonetown/internal/notify"
	"stonetown/internal/pgtest"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

type (
	relations   = identity.Relations // a name that does not hide the method
	noRelations struct{ relations }
	noScopes    struct{ identity.Scopes }
)

type tenants struct{}

func (tenants) AuthnTenant(context.Context, string) (Tenant, error) { return Tenant{}, nil }

// BenchmarkSignIn measures sign-ins with a password on all processors, and hashes alone:
// argon2id with 19 MiB, 2 passes and one lane. The difference is the cost of everything else.
func BenchmarkSignIn(b *testing.B) {
	const plain = "correct horse battery"
	hash, err := password.NewHash(b.Context(), plain)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("hash alone", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if ok, err := hash.Verify(b.Context(), plain); err != nil || !ok {
					b.Error(ok, err)
				}
			}
		})
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "hashes/s")
	})
	for name, url := range map[string]func(testing.TB) string{
		"SQLite":     func(t testing.TB) string { return "sqlite://" + filepath.Join(t.TempDir(), "bench.db") },
		"PostgreSQL": pgtest.URL,
	} {
		b.Run(name, func(b *testing.B) {
			s := openBench(b, url(b))
			const people = 1000
			for i := range people {
				_, err := s.users.Create(b.Context(), "tnt_a", identity.NewUser{Email: fmt.Sprintf("u%d@example.com", i), EmailVerified: true, PasswordHash: hash})
				if err != nil {
					b.Fatal(err)
				}
			}
			var next atomic.Int64
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					email := fmt.Sprintf("u%d@example.com", next.Add(1)%people)
					r, err := s.SignIn(b.Context(), Tenant{ID: "tnt_a", BaseURL: "https://a.test"}, email, plain, By{})
					if err != nil || r.Status != Complete {
						b.Error(r.Status, err)
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "sign-ins/s")
		})
	}
}

func openBench(b *testing.B, url string) *Service {
	b.Helper()
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	db, err := sqldb.Open(b.Context(), sqldb.Config{URL: url})
	must(err)
	b.Cleanup(func() { db.Close() })
	must(db.Migrate(b.Context(), identity.Migrations(), session.Migrations(), onetime.Migrations(), factor.Migrations(), external.Migrations(), Migrations(), jobs.Migrations(), eventlog.Migrations()))
	key, err := seal.NewKey(bytes.Repeat([]byte{1}, seal.KeySize))
	must(err)
	users, err := identity.New(identity.Config{
		DB: db, Relations: noRelations{}, Authority: authority.New(nil, nil), Breached: breached.None{}, Scopes: noScopes{},
		Verification: identity.NoVerification{}, Logger: slog.New(slog.DiscardHandler),
	})
	must(err)
	jobs, err := jobs.New(jobs.Config{DB: db, Seal: key})
	must(err)
	s, err := New(Config{DB: db, Seal: key, Users: users, Jobs: jobs, Mail: notify.None{}, Texts: notify.None{}, Tenants: tenants{}, GeoIP: geo.None{}, Limits: Unlimited{}, Logger: slog.New(slog.DiscardHandler)})
	must(err)
	return s
}
