package ticket

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

func TestTickets(t *testing.T) {
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
			hand := func(kind Kind) (string, Ticket) {
				t.Helper()
				secret, ticket, err := s.Hand(ctx, New{Kind: kind, TenantID: "tnt_a", UserID: "usr_a", Payload: map[string]string{"to": "ann"}, For: time.Hour})
				if err != nil {
					t.Fatal(err)
				}
				return secret, ticket
			}
			secret, handed := hand("letter")
			found, err := s.Find(ctx, "tnt_a", "letter", secret)
			var payload map[string]string
			if err == nil {
				err = found.Read(&payload)
			}
			if err != nil || found.UserID != "usr_a" || payload["to"] != "ann" || !found.ExpiresAt.Equal(handed.ExpiresAt) {
				t.Errorf("%+v %v, %v", found, payload, err)
			}
			for what, try := range map[string][3]string{"kind": {"tnt_a", "other", secret}, "tenant": {"tnt_b", "letter", secret}, "secret": {"tnt_a", "letter", secret + "x"}} {
				if _, err := s.Find(ctx, try[0], Kind(try[1]), try[2]); !errors.Is(err, ErrInvalid) {
					t.Errorf("another %s: %v", what, err)
				}
			}

			// Many come with it at once: one of them uses it.
			var wg sync.WaitGroup
			used := make(chan error, 20)
			for range cap(used) {
				wg.Go(func() { used <- db.Tx(ctx, func(tx *sqldb.Tx) error { return Use(ctx, tx, found) }) })
			}
			wg.Wait()
			close(used)
			won := 0
			for err := range used {
				if err == nil {
					won++
				} else if !errors.Is(err, ErrInvalid) {
					t.Error(err)
				}
			}
			if won != 1 {
				t.Errorf("used %d times", won)
			}

			// Many guess at once: five are judged.
			secret, _ = hand("code")
			tried := make(chan error, 50)
			for range cap(tried) {
				wg.Go(func() { _, err := s.Try(ctx, "tnt_a", "code", secret, 5); tried <- err })
			}
			wg.Wait()
			close(tried)
			judged := 0
			for err := range tried {
				if err == nil {
					judged++
				} else if !errors.Is(err, ErrInvalid) {
					t.Error(err)
				}
			}
			if judged != 5 {
				t.Errorf("%d guesses were judged", judged)
			}

			// Its time ends it, and then its row goes.
			secret, _ = hand("letter")
			now = now.Add(time.Hour)
			if _, err := s.Find(ctx, "tnt_a", "letter", secret); !errors.Is(err, ErrInvalid) {
				t.Errorf("when its time is over: %v", err)
			}
			if err := s.Tidy(ctx); err != nil {
				t.Error(err)
			}
			var rows int64
			if err := db.QueryRow(ctx, `SELECT COUNT(*) FROM tickets`).Scan(&rows); err != nil || rows != 0 {
				t.Errorf("%d rows are left, %v", rows, err)
			}
		})
	}
}
