package oauth_test

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/internal/eventlog"
	"stonetown/internal/jobs"
	"stonetown/internal/outbound"
	"stonetown/internal/pgtest"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
	"stonetown/oauth"
	"stonetown/oauth/client"
	"stonetown/oauth/grants"
	"stonetown/oauth/keys"
	"stonetown/oauth/oauthtest"
	"stonetown/oauth/protocol"
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
	tenantA = protocol.Tenant{ID: "tnt_a", BaseURL: "https://a.example.com"}
	tenantB = protocol.Tenant{ID: "tnt_b", BaseURL: "https://b.example.com"}
)

// world is a module on a database of its own.
type world struct {
	*oauth.Service
	t      testing.TB
	db     *sqldb.DB
	engine *engine.Engine
	clock  *clock
}

func TestMain(m *testing.M) { pgtest.Main(m) }

func newWorld(t testing.TB, changes ...func(*oauth.Config)) *world {
	t.Helper()
	return newWorldOn(t, open(t, "sqlite:"+filepath.Join(t.TempDir(), "test.db")), changes...)
}

// open connects to a database.
func open(t testing.TB, url string) *sqldb.DB {
	t.Helper()
	db, err := sqldb.Open(t.Context(), sqldb.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func newWorldOn(t testing.TB, db *sqldb.DB, changes ...func(*oauth.Config)) *world {
	t.Helper()
	if err := db.Migrate(t.Context(), oauth.Migrations(), sqlstore.Migrations(), eventlog.Migrations(), jobs.Migrations()); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, db: db, clock: &clock{now: time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)}}
	w.engine = oauthtest.Engine(t, oauth.Config{DB: db})
	w.Service = w.service(db, 1, changes...)
	return w
}

// service is another process on the same database.
func (w *world) service(db *sqldb.DB, masterKey byte, changes ...func(*oauth.Config)) *oauth.Service {
	w.t.Helper()
	c := oauth.Config{
		DB: db, Seal: masterKeyOf(w.t, masterKey), Users: &oauthtest.Users{}, Relations: w.engine, Clock: w.clock.Now,
		Outbound: outbound.New(outbound.Config{AllowInsecure: true}), Logger: slog.New(slog.DiscardHandler),
	}
	for _, change := range changes {
		change(&c)
	}
	return oauthtest.New(w.t, c)
}

func masterKeyOf(t testing.TB, b byte) *seal.Key {
	t.Helper()
	key, err := seal.NewKey(bytes.Repeat([]byte{b}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// signingKey is a private key of a tenant, which a thief has.
type signingKey struct {
	kid     string
	private crypto.Signer
}

// allKeys makes the keys of a tenant of all algorithms.
func (w *world) allKeys(tenant protocol.Tenant) {
	w.t.Helper()
	for _, alg := range keys.Algs {
		if _, err := w.Keys.Sign(w.t.Context(), tenant, alg, "JWT", struct{}{}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// steal returns the active signing keys of a tenant by algorithm, of which it makes the first.
func (w *world) steal(tenant protocol.Tenant) map[keys.Alg]signingKey {
	w.t.Helper()
	w.allKeys(tenant)
	rows, err := w.db.Query(w.t.Context(), `SELECT kid, alg, private_sealed FROM signing_keys WHERE tenant_id = $1 AND state = 'active'`, tenant.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	defer rows.Close()
	stolen := map[keys.Alg]signingKey{}
	for rows.Next() {
		var kid string
		var alg keys.Alg
		var sealed []byte
		if err := rows.Scan(&kid, (*string)(&alg), &sealed); err != nil {
			w.t.Fatal(err)
		}
		pkcs8, err := masterKeyOf(w.t, 1).Open(tenant.ID, kid, sealed)
		if err != nil {
			w.t.Fatal(err)
		}
		private, err := x509.ParsePKCS8PrivateKey(pkcs8)
		if err != nil {
			w.t.Fatal(err)
		}
		stolen[alg] = signingKey{kid, private.(crypto.Signer)}
	}
	if err := rows.Err(); err != nil || len(stolen) != len(keys.Algs) {
		w.t.Fatal(stolen, err)
	}
	return stolen
}

func (w *world) tx(fn func(*sqldb.Tx) error) {
	w.t.Helper()
	if err := w.db.Tx(w.t.Context(), fn); err != nil {
		w.t.Fatal(err)
	}
}

// application creates one; missing fields get a default.
func (w *world) application(tenant protocol.Tenant, n client.Application) (app client.Application, secret string) {
	w.t.Helper()
	if n.Name == "" {
		n.Name = "test"
	}
	if n.Type == "" {
		n.Type = client.Machine
	}
	w.tx(func(tx *sqldb.Tx) (err error) {
		app, secret, err = w.Clients.CreateIn(w.t.Context(), tx, tenant.ID, n)
		return err
	})
	return app, secret
}

// token gets an access token that must be granted.
func (w *world) token(tenant protocol.Tenant, app client.Application, secret string) string {
	w.t.Helper()
	got, err := w.Grants.Token(w.t.Context(), tenant, request(app, secret))
	if err != nil {
		w.t.Fatal(err)
	}
	return got.AccessToken
}

func request(app client.Application, secret string) grants.Request {
	return grants.Request{
		GrantType:   protocol.GrantClientCredentials,
		Credentials: client.Credentials{ClientID: app.ClientID, ClientSecret: secret, ClientAuthMethods: []client.AuthMethod{client.ClientSecretPost}},
	}
}
