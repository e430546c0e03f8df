package authn

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stonetown/engine/authority"
	"stonetown/identity"
	"stonetown/identity/branding"
	"stonetown/identity/external"
	"stonetown/identity/factor"
	"stonetown/identity/mails"
	"stonetown/identity/onetime"
	"stonetown/identity/password"
	"stonetown/identity/password/breached"
	"stonetown/identity/session"
	"stonetown/identity/threat"
	"stonetown/internal/eventlog"
	"stonetown/internal/geo"
	"stonetown/internal/jobs"
	"stonetown/internal/notify"
	"stonetown/internal/pgtest"
	"stonetown/internal/ratelimit"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
	"stonetown/tuplestore/sqlstore"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var tenantA = Tenant{ID: "tnt_a", Name: "Example", BaseURL: "https://a.test"}

type tenants struct{}

func (tenants) AuthnTenant(context.Context, string) (Tenant, error) { return tenantA, nil }

type (
	relations   = identity.Relations // a name that does not hide the method
	noRelations struct{ relations }
	noScopes    struct{ identity.Scopes }
)

// world is a service on a database of its own, with a clock that only tests advance, and a mailbox.
type world struct {
	*Service
	testing.TB
	db    *sqldb.DB
	later atomic.Int64 // nanoseconds that the clock is ahead
	mailbox
	limits
	listed // the list of breached passwords
	at     usable
	flow   scripted
	threats
	origins origins
}

// threats match one domain, in a mode.
type threats struct {
	domain    string
	mode      threat.Mode
	revisions []int64 // of the attempts
}

func (m *threats) Match(_ context.Context, _ string, revision int64, _, email string) ([]threat.Match, error) {
	m.revisions = append(m.revisions, revision)
	if threat.DomainOf(email) != m.domain {
		return nil, nil
	}
	return []threat.Match{{FeedID: "thf_a", Name: "List", Kind: threat.MailDomain, Mode: m.mode, Entry: m.domain}}, nil
}

// usable are connections at which users can sign in, except some.
type usable struct {
	not   []string
	began []string // the users and the groups of sessions
}

func (u *usable) Usable(_ context.Context, _ *sqldb.Tx, _, connectionID string) (bool, error) {
	return !slices.Contains(u.not, connectionID), nil
}

func (u *usable) SessionBegan(_ context.Context, tenantID, connectionID, userID string, groups []string) error {
	u.began = append(u.began, tenantID+" "+connectionID+" "+userID+" "+strings.Join(groups, ","))
	return nil
}

// advance moves the clock after all jobs have run: the lease of one that runs would end, and it
// would run again.
func (w *world) advance(by time.Duration) {
	w.Helper()
	w.idle()
	w.later.Add(int64(by))
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// open returns a world on SQLite. configure is called before its jobs run in the background.
func open(t testing.TB, configure ...func(*world)) *world {
	t.Helper()
	return openAt(t, "sqlite://"+filepath.Join(t.TempDir(), "test.db"), configure...)
}

func openAt(t testing.TB, url string, configure ...func(*world)) *world {
	t.Helper()
	w := &world{TB: t}
	began := time.Now()
	clock := func() time.Time { return began.Add(time.Duration(w.later.Load())) }
	queueClock := func() time.Time { return time.Now().Add(time.Duration(w.later.Load())) } // jobs become due
	log := slog.New(slog.DiscardHandler)
	ctx := context.Background()
	var err error
	w.db, err = sqldb.Open(ctx, sqldb.Config{URL: url})
	w.must(err)
	t.Cleanup(func() { w.db.Close() })
	w.must(w.db.Migrate(ctx, identity.Migrations(), session.Migrations(), onetime.Migrations(), factor.Migrations(),
		external.Migrations(), mails.Migrations(), Migrations(), jobs.Migrations(), eventlog.Migrations(), sqlstore.Migrations()))
	key, err := seal.NewKey(bytes.Repeat([]byte{1}, seal.KeySize))
	w.must(err)
	queue, err := jobs.New(jobs.Config{DB: w.db, Seal: key, Clock: queueClock})
	w.must(err)
	users, err := identity.New(identity.Config{
		DB: w.db, Relations: noRelations{}, Authority: authority.New(nil, nil), Breached: &w.listed, Scopes: noScopes{},
		Verification: Verification{queue}, Clock: clock, Logger: log,
	})
	w.must(err)
	brandings, err := branding.New(branding.Config{DB: w.db})
	w.must(err)
	w.Service, err = New(Config{
		DB: w.db, Seal: key, Users: users, Jobs: queue, Mail: &w.mailbox, Texts: &w.mailbox, Mails: mails.New(mails.Config{DB: w.db, Brandings: brandings}), Tenants: tenants{}, Flows: &w.flow, Origins: &w.origins,
		GeoIP: berlin{}, Limits: &w.limits, Threats: &w.threats, Pace: time.Millisecond, Clock: clock, Logger: log,
	})
	w.must(err)
	w.UseConnections(&w.at)
	for _, f := range configure {
		f(w)
	}
	running, stop := context.WithCancel(ctx)
	var background sync.WaitGroup
	background.Go(func() { w.Run(running) })
	background.Go(func() { queue.Run(running) })
	t.Cleanup(func() { stop(); background.Wait() })
	return w
}

// mailbox stores mails and text messages.
type mailbox struct {
	mu    sync.Mutex
	mails []notify.Mail
}

func (m *mailbox) SendMail(_ context.Context, mail notify.Mail) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mails = append(m.mails, mail)
	return nil
}

func (m *mailbox) SendText(ctx context.Context, number, text string) error {
	return m.SendMail(ctx, notify.Mail{To: number, Text: text})
}

// Accepts refuses the numbers of one country.
func (*mailbox) Accepts(number string) bool { return !strings.HasPrefix(number, "+7") }

// find removes and returns the first message to a recipient that contains words.
func (m *mailbox) find(to, words string) (notify.Mail, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.mails, func(mail notify.Mail) bool {
		return mail.To == to && strings.Contains(mail.Subject+"\n"+mail.Text, words)
	})
	if i < 0 {
		return notify.Mail{}, false
	}
	mail := m.mails[i]
	m.mails = slices.Delete(m.mails, i, i+1)
	return mail, true
}

// mail waits for a message to a recipient that contains words, and removes it.
func (w *world) mail(to, words string) notify.Mail {
	w.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if mail, ok := w.find(to, words); ok {
			return mail
		}
		w.jobs.Wake()
	}
	w.Fatalf("%s got no message with %q", to, words)
	return notify.Mail{}
}

// link waits for a mail and returns the token of its link.
func (w *world) link(to, words string) string {
	w.Helper()
	mail := w.mail(to, words)
	_, rest, _ := strings.Cut(mail.Text, "?token=")
	token, err := url.QueryUnescape(strings.FieldsFunc(rest+"\n", func(r rune) bool { return r == '\n' || r == '&' })[0])
	if err != nil || token == "" {
		w.Fatalf("the mail has no link: %v\n%s", err, mail.Text)
	}
	return token
}

// idle waits until no job is left.
func (w *world) idle() {
	w.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		var n int64
		w.must(w.db.QueryRow(context.Background(), `SELECT COUNT(*) FROM jobs`).Scan(&n))
		if n == 0 {
			return
		}
		w.jobs.Wake()
	}
	w.Fatal("jobs are left")
}

// silence fails if there is a message after all jobs have run.
func (w *world) silence(why string) {
	w.Helper()
	w.idle()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.mails) > 0 {
		w.Errorf("%s: there is a message to %s: %s%s", why, w.mails[0].To, w.mails[0].Subject, w.mails[0].Text)
	}
}

// limits refuse operations of one family.
type limits struct{ refused atomic.Value }

func (l *limits) refuse(family ratelimit.Family) { l.refused.Store(family) }

func (l *limits) Take(_ context.Context, b ratelimit.Bucket, _ ratelimit.Limit) (ratelimit.Decision, error) {
	if l.refused.Load() == b.Counted.Family {
		return ratelimit.Decision{Limited: true, RetryAfter: time.Minute}, nil
	}
	return ratelimit.Decision{}, nil
}

// listed is a list with one breached password.
type listed struct{ password atomic.Value }

func (l *listed) Enabled() bool { return true }

func (l *listed) Contains(_ context.Context, d breached.Digest) (bool, error) {
	plain, ok := l.password.Load().(string)
	return ok && d == breached.DigestOf(plain), nil
}

func (*listed) Stats() breached.Stats { return breached.Stats{} }
func (*listed) Close()                {}

// berlin locates all addresses in Berlin.
type berlin struct{ geo.None }

func (berlin) Find(string) geo.Place { return geo.Place{City: "Berlin", Country: "DE"} }

const plain = "correct horse battery"

var plainHash = sync.OnceValue(func() password.Hash {
	hash, err := password.NewHash(context.Background(), plain)
	if err != nil {
		panic(err)
	}
	return hash
})

// user adds an active user with the password plain, and applies a change.
func (w *world) user(email string, changes ...func(*identity.User)) identity.User {
	w.Helper()
	var u identity.User
	w.must(w.db.Tx(w.Context(), func(tx *sqldb.Tx) (err error) {
		if u, err = w.users.CreateUser(w.Context(), tx, tenantA.ID, identity.NewUser{Email: email, EmailVerified: true, PasswordHash: plainHash()}); err != nil {
			return err
		}
		for _, change := range changes {
			c, err := w.users.UpdateIn(w.Context(), tx, tenantA.ID, u.ID, change)
			if err != nil {
				return err
			}
			u = c.After
		}
		return nil
	}))
	return u
}

// stored returns a user as stored.
func (w *world) stored(u identity.User) identity.User {
	w.Helper()
	u, err := w.users.User(w.Context(), tenantA.ID, u.ID)
	w.must(err)
	return u
}

// settings changes the settings of the tenant.
func (w *world) settings(change func(*identity.Settings)) {
	w.Helper()
	w.must(w.db.Tx(w.Context(), func(tx *sqldb.Tx) error {
		_, _, err := w.users.UpdateSettings(w.Context(), tx, tenantA.ID, change)
		return err
	}))
}

// device returns a client with a user agent.
func device(agent string) Device {
	return Device{Device: session.Device{IP: "192.0.2.1", UserAgent: agent}}
}

// signIn signs a user in with the password plain.
func (w *world) signIn(email string) Result {
	w.Helper()
	r, err := w.SignIn(w.Context(), tenantA, email, plain, device("test"))
	w.must(err)
	return r
}

// live reports whether a session has not ended.
func (w *world) live(s session.Session) bool {
	_, err := w.ByID(w.Context(), tenantA.ID, s.ID)
	return err == nil
}

// events counts the events by type.
func (w *world) events() map[eventlog.Type]int {
	w.Helper()
	log, err := eventlog.Open(eventlog.Config{DB: w.db})
	w.must(err)
	count := map[eventlog.Type]int{}
	w.must(log.All(w.Context(), tenantA.ID, func(e eventlog.Event) error { count[e.Type]++; return nil }))
	return count
}

// wantEvents fails unless the numbers of events of some types are as given.
func (w *world) wantEvents(want map[eventlog.Type]int) {
	w.Helper()
	got := w.events()
	for t, n := range want {
		if got[t] != n {
			w.Errorf("%d events %s, want %d; all: %v", got[t], t, n, got)
		}
	}
}

// wantErr fails unless err wraps want.
func (w *world) wantErr(what string, err, want error) {
	w.Helper()
	if !errors.Is(err, want) {
		w.Errorf("%s: %v, want %v", what, err, want)
	}
}

// slowDown fails unless err is a [*SlowDownError], and returns it.
func (w *world) slowDown(what string, err error) *SlowDownError {
	w.Helper()
	slow, ok := errors.AsType[*SlowDownError](err)
	if !ok {
		w.Fatalf("%s: %v, want a SlowDownError", what, err)
	}
	return slow
}

// change changes a user.
func (w *world) change(u identity.User, change func(*identity.User)) {
	w.Helper()
	w.must(w.db.Tx(w.Context(), func(tx *sqldb.Tx) error {
		_, err := w.users.UpdateIn(w.Context(), tx, tenantA.ID, u.ID, change)
		return err
	}))
}
