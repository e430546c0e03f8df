package api_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"stonetown/api"
	"stonetown/controlplane"
	"stonetown/engine"
	"stonetown/identity/authn"
	"stonetown/identity/federation"
	"stonetown/identity/password/breached"
	"stonetown/identity/threat"
	"stonetown/internal/geo"
	"stonetown/internal/notify"
	"stonetown/internal/outbound"
	"stonetown/internal/pgtest"
	"stonetown/internal/ratelimit"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
	"stonetown/oauth"
	oauthclient "stonetown/oauth/client"
	"stonetown/oauth/dpop/dpoptest"
	"stonetown/oauth/scope"
	"stonetown/server"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// world is the whole product below the command line, on one database.
type world struct {
	db          *sqldb.DB
	tenants     *controlplane.Directory
	oauth       *oauth.Service
	engine      *engine.Engine
	config      api.Config
	server      *httptest.Server
	log         *logs
	org         string
	authn       *authn.Service
	connections *federation.Registry
	threats     *threat.Feeds
	mailbox     mailbox
	ranges      ranges
	t           testing.TB
	// receiver gets the deliveries of the subscriptions of households; nil: there are none.
	receiver *receiver
	quiet    func()       // ends the background jobs
	ahead    atomic.Int64 // added to the clock of sign-ins, jobs and idempotency keys, in nanoseconds
}

// now returns the time of sign-ins, jobs and idempotency keys.
func (w *world) now() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }

// later moves this time forward.
func (w *world) later(d time.Duration) { w.ahead.Add(int64(d)) }

// mailbox stores sent messages by recipient.
type mailbox struct {
	mu    sync.Mutex
	items map[string][]notify.Mail
}

func (m *mailbox) SendMail(_ context.Context, l notify.Mail) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.items == nil {
		m.items = map[string][]notify.Mail{}
	}
	m.items[l.To] = append(m.items[l.To], l)
	return nil
}

func (m *mailbox) SendText(ctx context.Context, number, text string) error {
	return m.SendMail(ctx, notify.Mail{To: number, Text: text})
}

// Accepts refuses the numbers of one country.
func (*mailbox) Accepts(number string) bool { return !strings.HasPrefix(number, "+7") }

// take waits for a message to a recipient with a text in its subject or body, and removes it.
func (m *mailbox) take(t testing.TB, to, words string) notify.Mail {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		m.mu.Lock()
		for i, l := range m.items[to] {
			if strings.Contains(l.Subject+"\n"+l.Text, words) {
				m.items[to] = slices.Delete(m.items[to], i, i+1)
				m.mu.Unlock()
				return l
			}
		}
		m.mu.Unlock()
	}
	t.Fatalf("nothing with %q was sent to %s", words, to)
	return notify.Mail{}
}

// count counts the messages to a recipient that have not been taken.
func (m *mailbox) count(to string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.items[to])
}

// link returns the token of the link in a mail.
func link(t testing.TB, l notify.Mail) string {
	t.Helper()
	_, rest, ok := strings.Cut(l.Text, "?token=")
	token, _, _ := strings.Cut(rest, "\n")
	token, _, _ = strings.Cut(token, "&")
	if !ok || token == "" {
		t.Fatalf("no link in %q", l.Text)
	}
	return token
}

// logs stores log records.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

var databases = map[string]func(testing.TB) string{
	"SQLite":     func(t testing.TB) string { return "sqlite://" + filepath.Join(t.TempDir(), "test.db") },
	"PostgreSQL": pgtest.URL,
}

// newWorld starts the product on an empty database. change, if not nil, can replace parts of
// the API.
func newWorld(t testing.TB, databaseURL string, change func(*api.Config)) *world {
	t.Helper()
	return newWorldOn(t, sqldb.Config{URL: databaseURL}, change)
}

// newWorldOn is newWorld on a database that is opened in a certain way, with changes of the
// composition.
func newWorldOn(t testing.TB, database sqldb.Config, change func(*api.Config), changes ...func(*server.Config)) *world {
	t.Helper()
	ctx := context.Background()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	w := &world{log: new(logs), t: t}
	key, err := seal.NewKey(bytes.Repeat([]byte{1}, seal.KeySize))
	must(err)
	compromised, err := breached.New(breached.Config{URL: w.ranges.start(t), Clock: w.now})
	must(err)
	// The tests request many tokens from one address.
	unlimited := ratelimit.Limits{}
	for _, counted := range []ratelimit.Counted{{Family: ratelimit.Token, By: ratelimit.IP}, {Family: ratelimit.Token, By: ratelimit.Caller}, {Family: ratelimit.SignIn, By: ratelimit.IP}, {Family: ratelimit.SignIn, By: ratelimit.Caller}} {
		unlimited[counted] = ratelimit.Limit{}
	}
	config := server.Config{
		Database: database, MasterKey: key, Mail: &w.mailbox, Texts: &w.mailbox,
		BreachedPasswords: compromised, GeoIP: germany(t), Outbound: outbound.New(outbound.Config{AllowInsecure: true, KeepAlive: true}),
		RateLimits: unlimited, SecurityContact: "mailto:security@example.com",
		Logger: slog.New(slog.NewJSONHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})), AccessLog: true,
		Clock: w.now, Pace: time.Millisecond, ControlURL: "https://" + controlHost, OpenOrganizations: true,
	}
	for _, change := range changes {
		change(&config)
	}
	s, err := server.Open(ctx, config)
	must(err)
	t.Cleanup(func() { must(s.Close()) })
	w.db = s.DB
	if _, benchmark := t.(*testing.B); !benchmark {
		t.Cleanup(func() { catalogued(t, w) })
	}
	running, stop := context.WithCancel(ctx)
	var background sync.WaitGroup
	background.Go(func() { s.Run(running) })
	w.quiet = func() { stop(); background.Wait() }
	t.Cleanup(w.quiet)

	w.engine, w.oauth, w.authn, w.connections, w.threats = s.Engine, s.OAuth, s.Authn, s.Connections, s.Threats
	w.tenants = s.Organizations
	w.config = s.API
	w.config.GeoIP = geo.None{}
	if change != nil {
		change(&w.config)
	}
	w.server = httptestServer(t, w, nil)

	must(w.db.Tx(ctx, func(tx *sqldb.Tx) error {
		org, err := s.Organizations.CreateOrganization(ctx, tx, "org", "Organisation")
		w.org = org.ID
		return err
	}))
	return w
}

// httptestServer serves a world as another process would; change can replace parts.
func httptestServer(t testing.TB, w *world, change func(*api.Config)) *httptest.Server {
	t.Helper()
	config := w.config
	config.Metrics = prometheus.NewRegistry()
	if change != nil {
		change(&config)
	}
	handler, err := api.New(config)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

// application is a client that can get tokens.
type application struct{ id, secret string }

// tenant creates a tenant and returns a client with all scopes.
func (w *world) tenant(t testing.TB, slug string) *client {
	t.Helper()
	ctx := context.Background()
	err := w.db.Tx(ctx, func(tx *sqldb.Tx) error {
		_, err := w.tenants.CreateTenant(ctx, tx, controlplane.NewTenant{
			OrgID: w.org, Slug: slug, Name: slug, BaseURL: "https://" + slug + ".test",
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	c := &client{server: w.server, host: slug + ".test"}
	c.token = w.token(t, c, w.application(t, c, scope.Builtin...))
	return c
}

// with returns the client with another token.
func (c *client) with(token string) *client {
	return &client{server: c.server, host: c.host, token: token, key: c.key}
}

// proving returns the client with proofs of a key (RFC 9449); nil: without.
func (c *client) proving(key *dpoptest.Key) *client {
	return &client{server: c.server, host: c.host, token: c.token, key: key}
}

func (w *world) application(t testing.TB, c *client, scopes ...string) application {
	t.Helper()
	return w.newApplication(t, c, oauthclient.Application{Name: "test", Type: oauthclient.Machine, AllowedScopes: scopes})
}

func (w *world) newApplication(t testing.TB, c *client, n oauthclient.Application) application {
	t.Helper()
	ctx := context.Background()
	tenant, err := w.tenants.TenantByHost(ctx, c.host)
	if err != nil {
		t.Fatal(err)
	}
	app, secret, err := w.oauth.Clients.Create(ctx, tenant.ID, n)
	if err != nil {
		t.Fatal(err)
	}
	return application{app.ClientID, secret}
}

// token requests a token from the token endpoint.
func (w *world) token(t testing.TB, c *client, app application) string {
	t.Helper()
	a := c.form(t, nil, url.Values{"grant_type": {"client_credentials"}, "client_id": {app.id}, "client_secret": {app.secret}})
	token, _ := a.body["access_token"].(string)
	if a.status != http.StatusOK || token == "" {
		t.Fatalf("token: %d %s", a.status, a.text)
	}
	return token
}

// form posts to the token endpoint.
func (c *client) form(t testing.TB, header http.Header, values url.Values) answer {
	t.Helper()
	return c.present(t, "/oauth2/token", header, values)
}

// present posts a form to an endpoint for clients.
func (c *client) present(t testing.TB, path string, header http.Header, values url.Values) answer {
	t.Helper()
	h := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	maps.Copy(h, header)
	return c.with("").send(t, "POST", path, h, []byte(values.Encode()))
}

func basic(id, secret string) http.Header {
	credentials := url.QueryEscape(id) + ":" + url.QueryEscape(secret)
	return http.Header{"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte(credentials))}}
}

// Bodies, as clients write them.

type object = map[string]any

func user(id string) object { return object{"type": "user", "id": id} }

func resource(typ, id string) object { return object{"type": typ, "external_id": id} }

func relation(subject object, name string) object {
	return object{"subject": subject, "relation": name}
}

func check(subject object, action string, res object) object {
	return object{"subject": subject, "action": action, "resource": res}
}

// path returns the path of a resource.
func path(typ, id string) string {
	return "/api/v1/resources/" + url.PathEscape(typ) + "/" + url.PathEscape(id)
}

const documents = `[
	{"name": "folder", "relations": [
		{"name": "parent", "subjects": ["folder"]},
		{"name": "owner"},
		{"name": "viewer", "rewrites": [{"kind": "this"}, {"kind": "computed", "relation": "owner"}, {"kind": "tuple_to_userset", "tupleset": "parent", "computed": "viewer"}]}
	]},
	{"name": "document", "description": "A document", "actions": {"publish": "owner"}, "relations": [
		{"name": "parent", "rewrites": [], "subjects": ["folder"]},
		{"name": "owner"},
		{"name": "banned", "subjects": ["user"]},
		{"name": "editor", "rewrites": [{"kind": "this"}, {"kind": "computed", "relation": "owner"}]},
		{"name": "viewer", "subjects": ["user", "user:*", "group#member", "folder#viewer"], "rewrites": [
			{"kind": "this"}, {"kind": "computed", "relation": "editor"}, {"kind": "tuple_to_userset", "tupleset": "parent", "computed": "viewer"}]},
		{"name": "reader", "rewrites": [{"kind": "exclusion", "base": {"kind": "union", "children": [{"kind": "computed", "relation": "viewer"}]}, "subtract": {"kind": "computed", "relation": "banned"}}]},
		{"name": "approver", "rewrites": [{"kind": "intersection", "children": [{"kind": "computed", "relation": "viewer"}, {"kind": "computed", "relation": "owner"}]}]}
	]}
]`

// define creates the resource types folder and document.
func define(t testing.TB, c *client) {
	t.Helper()
	for _, text := range split(t, documents) {
		c.want(t, http.StatusCreated, "", "POST", "/api/v1/resource-types", text)
	}
}

func relate(t testing.TB, c *client, typ, id, name string, subject object) answer {
	t.Helper()
	a := c.do(t, "POST", path(typ, id)+"/relations", relation(subject, name))
	if a.status != http.StatusCreated && a.status != http.StatusOK {
		t.Fatalf("relate: %d %s", a.status, a.text)
	}
	return a
}

// allowed sends a check and returns its answer.
func allowed(t testing.TB, c *client, subject object, action, typ, id string) bool {
	t.Helper()
	a := c.want(t, http.StatusOK, "", "POST", "/api/v1/resources/check", check(subject, action, resource(typ, id)))
	got, ok := a.data()["allowed"].(bool)
	if !ok {
		t.Fatalf("no decision in %s", a.text)
	}
	return got
}

func long(n int) string { return strings.Repeat("x", n) }
