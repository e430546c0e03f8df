package session

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"stonetown/internal/pgtest"
	"stonetown/internal/sqldb"
	"stonetown/internal/sqldb/sqltest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var databases = map[string]func(testing.TB) string{
	"SQLite":     func(t testing.TB) string { return "sqlite://" + filepath.Join(t.TempDir(), "test.db") },
	"PostgreSQL": pgtest.URL,
}

// open returns a store on a database and a function that advances its clock.
func open(t testing.TB, url string) (s *Store, later func(time.Duration)) {
	t.Helper()
	db, err := sqldb.Open(t.Context(), sqldb.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if err := db.Migrate(t.Context(), Migrations()); err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	return NewStore(db, NoOrigins{}, func() time.Time { return now }), func(d time.Duration) { now = now.Add(d) }
}

func begin(t testing.TB, s *Store, user string) (Session, string) {
	t.Helper()
	var session Session
	var token string
	err := s.db.Tx(t.Context(), func(tx *sqldb.Tx) (err error) {
		session, token, err = s.Begin(t.Context(), tx, New{
			TenantID: "tnt_a", UserID: user, Device: Device{"192.0.2.1", "Mozilla/5.0 (iPhone)"}, Methods: []string{"pwd"},
			Lifetimes: Lifetimes{Idle: time.Hour, Absolute: 24 * time.Hour},
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return session, token
}

func TestSessionsEndByThemselves(t *testing.T) {
	for name, url := range databases {
		t.Run(name, func(t *testing.T) {
			s, later := open(t, url(t))
			_, idle := begin(t, s, "usr_a")
			used, token := begin(t, s, "usr_a")
			for range 30 { // half an hour each: within the idle time, until the lifetime ends
				later(30 * time.Minute)
				found, err := s.ByToken(t.Context(), "tnt_a", token)
				if over := !s.now().Before(used.ExpiresAt); over != errors.Is(err, ErrEnded) || err != nil && !over {
					t.Fatalf("at %v: %v", s.now(), err)
				} else if !over && !found.LastActiveAt.Equal(s.now()) {
					t.Errorf("last active at %v, now is %v", found.LastActiveAt, s.now())
				}
			}
			if _, err := s.ByToken(t.Context(), "tnt_a", idle); !errors.Is(err, ErrEnded) {
				t.Errorf("an unused session: %v", err)
			}
			if all, err := s.List(t.Context(), "tnt_a", "usr_a"); err != nil || len(all) > 1 {
				t.Errorf("listed: %v, %v", all, err)
			}
		})
	}
}

func TestSessionsMakeRoom(t *testing.T) {
	for name, url := range databases {
		t.Run(name, func(t *testing.T) {
			s, later := open(t, url(t))
			first, _ := begin(t, s, "usr_a")
			for range MostPerUser {
				later(time.Second)
				begin(t, s, "usr_a")
			}
			begin(t, s, "usr_b")
			all, err := s.List(t.Context(), "tnt_a", "usr_a")
			if err != nil || len(all) != MostPerUser {
				t.Fatalf("%d sessions, %v", len(all), err)
			}
			if _, err := s.ByID(t.Context(), "tnt_a", first.ID); !errors.Is(err, ErrEnded) {
				t.Errorf("the oldest: %v", err)
			}
			later(2 * time.Hour)
			begin(t, s, "usr_a")
			var rows int64
			if err := s.db.QueryRow(t.Context(), `SELECT COUNT(*) FROM sessions WHERE user_id = 'usr_a'`).Scan(&rows); err != nil || rows != 1 {
				t.Errorf("%d rows are left, %v", rows, err)
			}
		})
	}
}

func TestDevices(t *testing.T) {
	for agent, want := range map[string]string{
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Mobile/15E148":  "phone",
		"Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 Chrome/148.0 Mobile Safari/537": "phone",
		"Mozilla/5.0 (iPad; CPU OS 18_0 like Mac OS X)":                                              "tablet",
		"Mozilla/5.0 (Linux; Android 15; SM-X910) AppleWebKit/537.36 Chrome/148.0 Safari/537":        "tablet",
		"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/148.0 Safari/537.36":              "desktop",
		"curl/8.0": "other", "": "other",
	} {
		if got := (Device{UserAgent: agent}).Kind(); got != want {
			t.Errorf("%s: %s, want %s", agent, got, want)
		}
	}
}

// PostgreSQL plans statements for empty tables, and keeps the plans for a while. Each must use its
// index.
func TestPlansUseIndexes(t *testing.T) {
	s, _ := open(t, pgtest.URL(t))
	for statement, index := range map[string]string{
		`SELECT ` + columns + ` FROM sessions WHERE tenant_id = $1 AND id = $2`:                            "sessions_pkey",
		`SELECT ` + columns + ` FROM sessions WHERE tenant_id = $1 AND user_id = $2 AND user_id <> ''`:     "sessions_by_user",
		`SELECT fingerprint FROM known_devices WHERE tenant_id = $1 AND user_id = $2 AND last_seen_at > 1`: "known_devices_pkey",
		`DELETE FROM known_devices WHERE last_seen_at <= LENGTH($1) + LENGTH($2)`:                          "known_devices_by_age",
	} {
		sqltest.UsesIndex(t, s.db, index, statement, "t", "x")
	}
}

// BenchmarkByToken measures the cost of a session token for a request, among 20,000 users.
func BenchmarkByToken(b *testing.B) {
	for name, url := range databases {
		b.Run(name, func(b *testing.B) {
			s, _ := open(b, url(b))
			var token string
			for page := range 20 {
				err := s.db.Tx(b.Context(), func(tx *sqldb.Tx) (err error) {
					for i := range 1000 {
						_, token, err = s.Begin(b.Context(), tx, New{TenantID: "tnt_a", UserID: fmt.Sprint("usr_", page*1000+i), Lifetimes: Lifetimes{time.Hour, time.Hour}})
						if err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ResetTimer()
			for b.Loop() {
				if _, err := s.ByToken(b.Context(), "tnt_a", token); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
