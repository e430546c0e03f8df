package oauth

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/internal/eventlog"
	"stonetown/internal/outbound"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
	"stonetown/tuplestore/sqlstore"
)

// clock is a hand-moved clock.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

var (
	tenantA = Tenant{ID: "tnt_a", BaseURL: "https://a.example.com"}
	tenantB = Tenant{ID: "tnt_b", BaseURL: "https://b.example.com"}
)

// world is a service on a database of its own.
type world struct {
	*Service
	t     testing.TB
	clock *clock
}

func newWorld(t testing.TB) *world {
	t.Helper()
	db, err := sqldb.Open(t.Context(), sqldb.Config{URL: "sqlite:" + filepath.Join(t.TempDir(), "test.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if err := db.Migrate(t.Context(), Migrations(), sqlstore.Migrations(), eventlog.Migrations()); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, clock: &clock{now: time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)}}
	w.Service = w.service(db, 1)
	return w
}

// service is another process on the same database.
func (w *world) service(db *sqldb.DB, masterKey byte) *Service {
	w.t.Helper()
	key, err := seal.NewKey(bytes.Repeat([]byte{masterKey}, seal.KeySize))
	if err != nil {
		w.t.Fatal(err)
	}
	store, err := sqlstore.New(sqlstore.Config{DB: db})
	if err != nil {
		w.t.Fatal(err)
	}
	relations, err := engine.New(engine.Config{Store: store})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		relations.Close()
		if err := store.Close(); err != nil {
			w.t.Error(err)
		}
	})
	s, err := New(Config{
		DB: db, Seal: key, Relations: relations, Clock: w.clock.Now,
		Outbound: outbound.New(outbound.Config{AllowInsecure: true}), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *world) tx(fn func(*sqldb.Tx) error) {
	w.t.Helper()
	if err := w.db.Tx(w.t.Context(), fn); err != nil {
		w.t.Fatal(err)
	}
}

// application creates one; missing fields get a default.
func (w *world) application(tenant Tenant, n Application) (app Application, secret string) {
	w.t.Helper()
	if n.Name == "" {
		n.Name = "test"
	}
	if n.Type == "" {
		n.Type = Machine
	}
	w.tx(func(tx *sqldb.Tx) (err error) {
		app, secret, err = w.CreateApplication(w.t.Context(), tx, tenant.ID, n)
		return err
	})
	return app, secret
}

// token gets an access token that must be granted.
func (w *world) token(tenant Tenant, app Application, secret string) string {
	w.t.Helper()
	got, err := w.Token(w.t.Context(), tenant, request(app, secret))
	if err != nil {
		w.t.Fatal(err)
	}
	return got.AccessToken
}

func request(app Application, secret string) TokenRequest {
	return TokenRequest{
		GrantType:   GrantClientCredentials,
		Credentials: Credentials{ClientID: app.ClientID, ClientSecret: secret, ClientAuthMethods: []ClientAuthMethod{ClientSecretPost}},
	}
}
