package api_test

import (
	"bytes"
	"image/color"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"

	"stonetown/controlplane"
	"stonetown/controlplane/transfer"
	"stonetown/internal/eventlog"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
	"stonetown/oauth/scope"
	"stonetown/server"
	"stonetown/webhooks/signature"
)

// site is a deployment with a master key of its own.
type site struct {
	*world
	key *seal.Key
}

func newSite(t testing.TB, database string, fill byte) site {
	t.Helper()
	key, err := seal.NewKey(bytes.Repeat([]byte{fill}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	w := newWorldOn(t, sqldb.Config{URL: databases[database](t)}, nil, func(c *server.Config) { c.MasterKey = key })
	return site{w, key}
}

func (s site) deployment() transfer.Deployment {
	return transfer.Deployment{DB: s.db, MasterKey: s.key, Product: "test", Clock: s.now}
}

// move moves the tenant of a host to another site, and suspends it meanwhile.
func (s site) move(t testing.TB, host string, to site) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	identity, err := age.GenerateX25519Identity()
	must(err)
	tenant, err := s.tenants.TenantByHost(t.Context(), host)
	must(err)
	_, err = s.tenants.Suspend(t.Context(), tenant.ID, "moves", eventlog.Origin{})
	must(err)
	var archive bytes.Buffer
	exported, err := transfer.Export(t.Context(), s.deployment(), tenant.ID, &archive, identity.Recipient())
	must(err)
	_, imported, err := transfer.Import(t.Context(), to.deployment(), to.tenants, &archive, transfer.Address{OrgID: to.org}, identity)
	must(err)
	if imported != exported || exported.Tables < 25 {
		t.Errorf("exported %+v, imported %+v", exported, imported)
	}
	to.ahead.Store(s.ahead.Load())
	(&client{server: to.server, host: host}).want(t, 403, "tenant_suspended", "POST", authPath+"/sign-in", object{"email": "ann@example.com", "password": secret})
	_, err = to.tenants.Resume(t.Context(), tenant.ID, eventlog.Origin{})
	must(err)
}

// at returns a client of the same tenant at another site.
func (c *client) at(s site) *client {
	return &client{server: s.server, host: c.host, token: c.token, key: c.key}
}

// A tenant moves to deployments with other databases and master keys, which serve other tenants
// meanwhile. Its users, applications, service providers and receivers notice nothing.
func TestMovedTenant(t *testing.T) {
	for _, order := range [][3]string{{"SQLite", "PostgreSQL", "SQLite"}, {"PostgreSQL", "SQLite", "PostgreSQL"}} {
		t.Run(order[0], func(t *testing.T) {
			first, second, third := newSite(t, order[0], 1), newSite(t, order[1], 2), newSite(t, order[2], 3)
			h := first.household(t, "moved")
			c := h.admin
			m := &mover{site: first, c: c, me: h.me}
			m.prepare(t)
			for _, next := range []site{second, third} {
				other := next.tenant(t, "other") // the processes hold leases
				other.want(t, 200, "", "GET", "/api/v1/users", nil)
				m.site.move(t, c.host, next)
				m.site, m.c, m.me = next, m.c.at(next), m.me.at(next)
				m.verify(t)
			}
		})
	}
}

// mover is the tenant that moves, with what must be the same everywhere.
type mover struct {
	site
	c, me *client

	totp     string
	device   *device
	codes    []any // unused backup codes
	revoked  string
	jwks     []string
	token    string // of consistency
	party    *samlParty
	name     string // of the user at the service provider
	receiver *receiver
	hook     string
	secret   signature.Secret
	created  answer // of a request with an idempotency key
	checks   []bool
	logo     string // the path
}

func (m *mover) prepare(t testing.TB) {
	c := m.c
	m.party = newSAMLParty(t, m.world, c, "payroll", false, nil)
	m.party.session = m.me.token
	m.name = m.party.identity(t).Subject.Value
	m.device = newDevice(c.host)
	m.device.register(t, m.me)
	m.me = m.assert(t)
	m.totp, _ = enrol(t, m.world, m.me)
	m.codes = m.me.want(t, 200, "", "POST", mePath+"/mfa/backup-codes", nil).data()["codes"].([]any)

	app := m.application(t, c, scope.Builtin...)
	m.revoked = m.site.world.token(t, c, app)
	equal(t, "revoked", c.present(t, revokePath, basic(app.id, app.secret), url.Values{"token": {m.revoked}}).status, 200)
	if _, err := m.db.Exec(t.Context(), `UPDATE revocations SET changed_at = 1`); err != nil { // long ago
		t.Fatal(err)
	}
	m.jwks = published(t, c)
	m.token = relate(t, c, "document", "q3", "viewer", user("usr_late")).meta("consistency_token").(string)
	m.receiver = newReceiver(t, http.StatusNoContent)
	m.hook, m.secret = subscribe(t, c, m.receiver.URL, nil, "user.created")
	m.created = m.repeated(t)
	equal(t, "created", m.created.status, 201)
	c.want(t, 200, "", "PATCH", brandingPath, object{"display_name": "Moved & Co"})
	m.logo = c.setLogo(t, "", "image/png", logoOf(t, color.Black, 32, 32)).data()["logo"].(object)["light"].(object)["path"].(string)
	m.checks = m.check(t)
	if !slices.Contains(m.checks, true) || !slices.Contains(m.checks, false) {
		t.Errorf("checks: %v", m.checks)
	}
}

// published returns the ids of the keys of a tenant.
func published(t testing.TB, c *client) []string {
	t.Helper()
	kids, _ := c.jwks(t)
	return kids
}

// repeated sends a request that has an effect once.
func (m *mover) repeated(t testing.TB) answer {
	t.Helper()
	return m.c.send(t, "POST", groupsPath, http.Header{"Idempotency-Key": {"group-1"}, "Content-Type": {"application/json"}}, []byte(`{"name":"Once","slug":"once"}`))
}

func (m *mover) check(t testing.TB) (answers []bool) {
	t.Helper()
	for _, subject := range []string{"usr_anna", "usr_bert", "usr_late", "usr_none"} {
		for _, id := range []string{"q3", "reports/2026/q3"} {
			answers = append(answers, allowed(t, m.c, user(subject), "view", "document", id))
		}
	}
	return answers
}

// assert signs in with the passkey.
func (m *mover) assert(t testing.TB) *client {
	t.Helper()
	begun := m.c.with("").want(t, 200, "", "POST", authPath+"/webauthn/begin", object{}).data()
	done := m.c.with("").want(t, 200, "", "POST", authPath+"/webauthn/complete", object{"ceremony_id": begun["ceremony_id"], "credential": m.device.get(t, begun)}).data()
	return m.c.with(done["session_token"].(string))
}

func (m *mover) verify(t testing.TB) {
	t.Helper()
	c := m.c
	// Tokens, sessions and keys.
	c.with(m.revoked).want(t, 401, "invalid_token", "GET", "/api/v1/users", nil)
	c.want(t, 200, "", "GET", "/api/v1/users", nil)
	m.me.want(t, 200, "", "GET", mePath+"/profile", nil)
	equal(t, "keys", published(t, c), m.jwks)

	// The branding.
	equal(t, "name on pages", strings.Contains(c.visit(t, "GET", "/auth/sign-in", nil, nil).html, `alt="Moved &amp; Co"`), true)
	equal(t, "logo", c.visit(t, "GET", m.logo, nil, nil).status, 200)

	// Sign-ins.
	second := func(status int, form object) {
		t.Helper()
		form["mfa_token"] = signIn(t, c, "ann@example.com", secret, "mfa_required").data()["mfa_token"]
		a := c.with("").do(t, "POST", authPath+"/mfa/verify", form)
		equal(t, form["kind"].(string), a.status, status)
	}
	m.later(2 * step)
	second(200, object{"kind": "totp", "code": code(t, m.totp, m.now())})
	used := m.codes[0]
	m.codes = m.codes[1:]
	second(200, object{"kind": "backup_code", "code": used})
	second(400, object{"kind": "backup_code", "code": used})
	m.later(step) // the failure delays the next attempt
	me := m.assert(t)
	me.want(t, 200, "", "GET", mePath+"/profile", nil)

	// The user at the service provider.
	m.party.w, m.party.client = m.world, c.with("")
	equal(t, "name", m.party.identity(t).Subject.Value, m.name)

	// Decisions, also with a consistency token of the earlier deployment.
	for i, got := range m.check(t) {
		equal(t, "check", got, m.checks[i])
	}
	a := c.want(t, 200, "", "POST", "/api/v1/resources/check", with(check(user("usr_late"), "view", resource("document", "q3")), object{"consistency_token": m.token}))
	equal(t, "late", []any{a.data()["allowed"], a.meta("consistency_token_ignored")}, []any{true, true})

	// Requests that are repeated, and events.
	again := m.repeated(t)
	equal(t, "repeated", []any{again.status, again.text, again.header.Get("Idempotent-Replayed")}, []any{201, m.created.text, "true"})
	before := len(m.receiver.all())
	member(t, c, "new"+m.org+"@example.com")
	got := m.receiver.wait(t, before+1)[before]
	equal(t, "event", []any{got.event["event_type"], m.verified(got, m.secret)}, []any{"user.created", true})
	m.secret = signingSecret(t, c.want(t, 200, "", "POST", subscriptionsPath+"/"+m.hook+"/rotate-secret", nil).data())
	tenant, err := m.tenants.TenantByHost(t.Context(), c.host)
	equal(t, "state", []any{err, tenant.State}, []any{nil, controlplane.TenantActive})
}
