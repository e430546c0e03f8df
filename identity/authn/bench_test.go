package authn

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"stonetown/identity"
	"stonetown/internal/pgtest"
)

// BenchmarkSignIn measures sign-ins with a password on all processors, and hashes alone:
// argon2id with 19 MiB, 2 passes and one lane. The difference is the cost of everything else.
func BenchmarkSignIn(b *testing.B) {
	hash := plainHash()
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
			s := openAt(b, url(b))
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
					r, err := s.SignIn(b.Context(), tenantA, email, plain, Device{})
					if err != nil || r.Status != Complete {
						b.Error(r.Status, err)
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "sign-ins/s")
		})
	}
}
