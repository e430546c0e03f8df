package onetime

import (
	"bytes"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"stonetown/internal/pgtest"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestTokens(t *testing.T) {
	for name, url := range map[string]func(testing.TB) string{
		"SQLite":     func(t testing.TB) string { return "sqlite://" + filepath.Join(t.TempDir(), "test.db") },
		"PostgreSQL": pgtest.URL,
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			db, err := sqldb.Open(ctx, sqldb.Config{URL: url(t)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() })
			if err := db.Migrate(ctx, Migrations()); err != nil {
				t.Fatal(err)
			}
			key, err := seal.NewKey(bytes.Repeat([]byte{1}, seal.KeySize))
			if err != nil {
				t.Fatal(err)
			}
			now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
			s := NewStore(db, key, func() time.Time { return now })
			create := func(kind Kind) (string, Token) {
				t.Helper()
				secret, token, err := s.Create(ctx, New{Kind: kind, TenantID: "tnt_a", UserID: "usr_a", Payload: map[string]string{"to": "ann"}, For: time.Hour})
				if err != nil {
					t.Fatal(err)
				}
				return secret, token
			}
			secret, created := create("mail")
			found, err := s.Find(ctx, "tnt_a", "mail", secret)
			var payload map[string]string
			if err == nil {
				err = found.Read(&payload)
			}
			if err != nil || found.UserID != "usr_a" || payload["to"] != "ann" || !found.ExpiresAt.Equal(created.ExpiresAt) {
				t.Errorf("%+v %v, %v", found, payload, err)
			}
			for what, try := range map[string][3]string{"kind": {"tnt_a", "other", secret}, "tenant": {"tnt_b", "mail", secret}, "secret": {"tnt_a", "mail", secret + "x"}} {
				if _, err := s.Find(ctx, try[0], Kind(try[1]), try[2]); !errors.Is(err, ErrInvalid) {
					t.Errorf("another %s: %v", what, err)
				}
			}

			// Of many concurrent uses one succeeds.
			var wg sync.WaitGroup
			used := make(chan error, 20)
			for range cap(used) {
				wg.Go(func() { used <- db.Tx(ctx, func(tx *sqldb.Tx) error { return Use(ctx, tx, found) }) })
			}
			wg.Wait()
			close(used)
			succeeded := 0
			for err := range used {
				if err == nil {
					succeeded++
				} else if !errors.Is(err, ErrInvalid) {
					t.Error(err)
				}
			}
			if succeeded != 1 {
				t.Errorf("used %d times", succeeded)
			}

			// Of many concurrent attempts five are admitted.
			secret, _ = create("code")
			tried := make(chan error, 50)
			for range cap(tried) {
				wg.Go(func() { _, err := s.Try(ctx, "tnt_a", "code", secret, 5); tried <- err })
			}
			wg.Wait()
			close(tried)
			admitted := 0
			for err := range tried {
				if err == nil {
					admitted++
				} else if !errors.Is(err, ErrInvalid) {
					t.Error(err)
				}
			}
			if admitted != 5 {
				t.Errorf("%d attempts were admitted", admitted)
			}

			// A token expires, and then its row is deleted.
			secret, _ = create("mail")
			now = now.Add(time.Hour)
			if _, err := s.Find(ctx, "tnt_a", "mail", secret); !errors.Is(err, ErrInvalid) {
				t.Errorf("after it has expired: %v", err)
			}
			if err := s.DeleteExpired(ctx); err != nil {
				t.Error(err)
			}
			var rows int64
			if err := db.QueryRow(ctx, `SELECT COUNT(*) FROM onetime_tokens`).Scan(&rows); err != nil || rows != 0 {
				t.Errorf("%d rows are left, %v", rows, err)
			}
		})
	}
}
