package authn

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"stonetown/identity"
	"stonetown/identity/external"
	"stonetown/identity/factor"
	"stonetown/identity/session"
	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
	"stonetown/schema"
)

// origins has one session of the control plane, which ends when a test says so.
type origins struct {
	mu      sync.Mutex
	control session.Session
}

func (o *origins) set(s session.Session) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.control = s
}

func (o *origins) Origin(_ context.Context, tenantID string, from session.Origin) (session.Session, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if tenantID != tenantA.ID || o.control.ID == "" || from != bossOrigin {
		return session.Session{}, session.ErrEnded
	}
	return o.control, nil
}

var bossOrigin = session.Origin{SessionID: "ses_control", UserID: "usr_boss", OrganizationID: "org_a"}

// manage makes a user a managed one, who has the ways to sign in that the user had.
func (w *world) manage(u identity.User, person string) {
	w.Helper()
	_, err := w.db.Exec(w.Context(), `UPDATE users SET managed_by = $2 WHERE id = $1`, u.ID, person)
	w.must(err)
}

// TestManagedUsersSignInFromTheControlPlaneOnly: even a managed user that has, by some way, a password, a
// passkey, an identity at a connection or a mailed link gets no session by it.
func TestManagedUsersSignInFromTheControlPlaneOnly(t *testing.T) {
	w := open(t)
	ann, bob := w.user("ann@example.com"), w.user("bob@example.com")
	key, _ := w.addPasskey(ann)
	app := w.addTOTP(bob)
	linked := assertion()
	linked.Subject, linked.Email = "linked", "linked@example.com"
	known, err := w.federated(linked)
	w.must(err)
	prompted, matching := assertion(), assertion()
	prompted.Email, prompted.Subject, prompted.Link = "ann@example.com", "prompted", LinkPrompt
	erin, carol := w.user("erin@example.com"), w.user("carol@example.com")
	matching.Email, matching.EmailVerified, matching.Subject, matching.Link = erin.Email, true, "matching", LinkVerified
	dave := w.user("dave@example.com", func(u *identity.User) { u.PasswordMustBeReset = true })
	w.must(w.Forgot(t.Context(), tenantA, carol.Email, ""))
	reset := w.link(carol.Email, "Choose a new password")
	forced := w.signIn("dave@example.com")
	second := w.signIn("bob@example.com")
	waiting, err := w.federated(prompted)
	w.must(err)
	byPassword := prompted
	byPassword.Email, byPassword.Subject = erin.Email, "by password"
	alsoWaiting, err := w.federated(byPassword)
	w.must(err)
	on := device("test")
	remembered := on
	remembered.Remember = true

	for i, u := range []identity.User{ann, bob, carol, dave, erin, known.User} {
		w.manage(u, "usr_person"+string(rune('a'+i)))
	}
	before := w.events()[eventlog.SessionCreated]
	passkey := func() (string, []byte) {
		begun, err := w.BeginPasskey(t.Context(), tenantA, "")
		w.must(err)
		return begun.ID, key.get(t, begun.Options)
	}
	for name, path := range map[string]func() (Result, error){
		"password": func() (Result, error) { return w.SignIn(t.Context(), tenantA, erin.Email, plain, on) },
		"second factor": func() (Result, error) {
			return w.VerifyFactor(t.Context(), tenantA, second.Continue, Answer{Kind: factor.TOTP, Code: app.next()}, remembered)
		},
		"passkey": func() (Result, error) {
			id, credential := passkey()
			return w.CompletePasskey(t.Context(), tenantA, id, credential, on)
		},
		"connection":            func() (Result, error) { return w.federated(linked) },
		"address at connection": func() (Result, error) { return w.federated(matching) },
		"reset link": func() (Result, error) {
			return w.ResetPassword(t.Context(), tenantA, reset, "another horse battery", on)
		},
		"forced replacement": func() (Result, error) {
			return w.ResetPassword(t.Context(), tenantA, forced.Continue, "another horse battery", on)
		},
		"linking by password": func() (Result, error) {
			return w.LinkWithPassword(t.Context(), tenantA, alsoWaiting.Continue, plain, on)
		},
		"linking by passkey": func() (Result, error) {
			id, credential := passkey()
			return w.LinkWithPasskey(t.Context(), tenantA, waiting.Continue, id, credential, on)
		},
	} {
		r, err := path()
		if !errors.Is(err, identity.ErrManaged) || r.Token != "" || r.Continue != "" {
			t.Errorf("%s: %s, %v", name, r.Status, err)
		}
	}
	w.wantEvents(map[eventlog.Type]int{eventlog.SessionCreated: before})

	// Nothing gives it a further way, and nothing is sent to it.
	w.idle()
	w.mu.Lock()
	w.mails = nil
	w.mu.Unlock()
	if err := w.SendReset(t.Context(), tenantA.ID, ann.ID); !errors.Is(err, identity.ErrManaged) {
		t.Errorf("a link to a new password: %v", err)
	}
	if err := w.Link(t.Context(), external.Identity{TenantID: tenantA.ID, UserID: ann.ID, ConnectionID: "con_a", Subject: "s"}); !errors.Is(err, identity.ErrManaged) {
		t.Errorf("a link with an identity: %v", err)
	}
	for name, change := range map[string]func(*identity.User){
		"password":         func(u *identity.User) { u.SetPassword(plainHash() + "x") },
		"address":          func(u *identity.User) { u.Email = "x@example.com" },
		"verified address": func(u *identity.User) { u.EmailVerified = false },
		"forced reset":     func(u *identity.User) { u.PasswordMustBeReset = true },
	} {
		err := w.db.Tx(t.Context(), func(tx *sqldb.Tx) error {
			_, err := w.users.UpdateIn(t.Context(), tx, tenantA.ID, ann.ID, change)
			return err
		})
		if !errors.Is(err, identity.ErrManaged) {
			t.Errorf("a change of %s: %v", name, err)
		}
	}
	w.must(w.Forgot(t.Context(), tenantA, erin.Email, ""))
	w.must(w.SendAnnouncement(t.Context(), tenantA.ID, ann.ID, "Breach", "Text"))
	w.must(w.SendReport(t.Context(), tenantA.ID, ann.ID, "Report", time.Now(), nil, "/"))
	w.must(w.db.Tx(t.Context(), func(tx *sqldb.Tx) error {
		var b sqldb.Batch
		for _, what := range []string{passwordChanged, passwordBreached, factorAdded, factorRemoved, identityAdded, identityRemoved} {
			w.notify(&b, tenantA.ID, ann.ID, what)
		}
		Verification{w.jobs}.Queue(&b, ann)
		w.jobs.Enqueue(&b, tenantA.ID, jobSignInMail, signInMail{UserID: ann.ID, DeviceKind: "desktop", IP: "192.0.2.1", At: time.Now()})
		return tx.Send(t.Context(), &b)
	}))
	w.silence("a managed user")
}

// entrant adds a managed user of the person of bossOrigin, and issues a token of an entry.
func (w *world) entrant() (identity.User, string) {
	w.Helper()
	var u identity.User
	w.must(w.db.Tx(w.Context(), func(tx *sqldb.Tx) (err error) {
		u, err = w.users.CreateUser(w.Context(), tx, tenantA.ID, identity.NewUser{Email: "boss@control.test", Profile: identity.Profile{Name: "Boss"}})
		return err
	}))
	_, err := w.db.Exec(w.Context(), `UPDATE users SET managed_by = $2, state = 'active', email_norm = '' WHERE id = $1`, u.ID, bossOrigin.UserID)
	w.must(err)
	return w.stored(u), w.issue(u)
}

func (w *world) issue(u identity.User) (token string) {
	w.Helper()
	w.must(w.db.Tx(w.Context(), func(tx *sqldb.Tx) error {
		var b sqldb.Batch
		token, _ = w.IssueEntry(&b, tenantA.ID, u.ID, bossOrigin)
		return tx.Send(w.Context(), &b)
	}))
	return token
}

func TestEnter(t *testing.T) {
	w := open(t)
	proved := w.now().Add(-5 * time.Minute)
	control := session.Session{ID: bossOrigin.SessionID, UserID: bossOrigin.UserID, AuthTime: proved, SecondFactor: proved}
	w.origins.set(control)
	u, first := w.entrant()
	// The tenant demands what nobody can do from the control plane.
	w.settings(func(s *identity.Settings) { s.MFA.Mode, s.RequireVerifiedEmail = identity.MFARequired, true })
	w.publish(denies("sign_in"))
	on := device("test")
	enter := func(token string) (Result, error) { return w.Enter(t.Context(), tenantA, token, on) }

	token := w.issue(u) // takes the place of the first
	for range 2 {       // reading uses nothing up
		e, err := w.ReadEntry(t.Context(), tenantA, token)
		w.must(err)
		if e.User.ID != u.ID || e.Origin != bossOrigin {
			t.Errorf("the entry is %+v", e)
		}
	}
	for name, refused := range map[string]func() error{
		"replaced":       func() error { _, err := enter(first); return err },
		"unknown":        func() error { _, err := enter("x"); return err },
		"other tenant":   func() error { _, err := w.Enter(t.Context(), Tenant{ID: "tnt_b"}, token, on); return err },
		"read, replaced": func() error { _, err := w.ReadEntry(t.Context(), tenantA, first); return err },
	} {
		if err := refused(); !errors.Is(err, ErrToken) {
			t.Errorf("%s: %v", name, err)
		}
	}

	r, err := enter(token)
	w.must(err)
	s := r.Session
	if r.Status != Complete || !s.Opened() || s.Origin != bossOrigin || !s.SecondFactor.Equal(proved) || !s.AuthTime.Equal(proved) || s.ExpiresAt.Sub(s.CreatedAt) != session.OpenedFor {
		t.Errorf("entered: %s, %+v", r.Status, s)
	}
	if _, err := enter(token); !errors.Is(err, ErrToken) {
		t.Errorf("a used token: %v", err)
	}
	w.wantEvents(map[eventlog.Type]int{eventlog.UserSignedIn: 1, eventlog.SessionCreated: 1})
	w.silence("an entry")

	// The session does not outlive its origin, and use does not extend it.
	alive := func() bool {
		_, err := w.ByToken(t.Context(), tenantA.ID, r.Token)
		_, byID := w.ByID(t.Context(), tenantA.ID, s.ID)
		var b sqldb.Batch
		queued := w.QueueByID(&b, tenantA.ID, s.ID)
		w.must(w.db.Send(t.Context(), &b))
		_, inBatch := queued(t.Context())
		listed, failed := w.Sessions(t.Context(), tenantA.ID, u.ID)
		w.must(failed)
		among, failed := w.LiveSessions(t.Context(), tenantA.ID, []string{s.ID})
		w.must(failed)
		if (err == nil) != (byID == nil) || (err == nil) != (inBatch == nil) || (err == nil) != (len(listed) > 0) || (err == nil) != (len(among) > 0) {
			t.Errorf("by token %v, by id %v, in a batch %v, listed %d, among others %d", err, byID, inBatch, len(listed), len(among))
		}
		if err != nil && !errors.Is(err, session.ErrEnded) {
			t.Error(err)
		}
		return err == nil
	}
	if !alive() {
		t.Error("the session has ended")
	}
	pending := w.issue(u)
	w.origins.set(session.Session{})
	if alive() {
		t.Error("the session outlives its origin")
	}
	if _, err := enter(pending); !errors.Is(err, ErrToken) {
		t.Errorf("an entry without its origin: %v", err)
	}
	w.origins.set(control)
	w.advance(session.OpenedFor - time.Minute)
	if !alive() {
		t.Error("the session has ended early")
	}
	w.advance(time.Minute)
	if alive() {
		t.Error("the session outlives its lifetime")
	}

	// The token expires.
	token = w.issue(u)
	w.advance(EntryFor)
	if _, err := enter(token); !errors.Is(err, ErrToken) {
		t.Errorf("an expired token: %v", err)
	}

	// A person without a second factor has none in the tenant.
	w.origins.set(session.Session{ID: bossOrigin.SessionID, UserID: bossOrigin.UserID, AuthTime: w.now()})
	if r, err = enter(w.issue(u)); err != nil || !r.Session.SecondFactor.IsZero() {
		t.Errorf("entered without a factor: %v, %+v", err, r.Session)
	}

	// A disabled one does not enter, also with a token from before.
	token = w.issue(u)
	_, err = w.db.Exec(t.Context(), `UPDATE users SET state = 'disabled' WHERE id = $1`, u.ID)
	w.must(err)
	if _, err := enter(token); !errors.Is(err, ErrDisabled) {
		t.Errorf("a disabled user: %v", err)
	}
	// The token was not used up.
	_, err = w.db.Exec(t.Context(), `UPDATE users SET state = 'active' WHERE id = $1`, u.ID)
	w.must(err)
	if _, err := enter(token); err != nil {
		t.Error(err)
	}
}

// TestEntriesAreUsedOnce: of many that use a token at once, one enters.
func TestEntriesAreUsedOnce(t *testing.T) {
	w := open(t)
	w.origins.set(session.Session{ID: bossOrigin.SessionID, UserID: bossOrigin.UserID, AuthTime: w.now()})
	_, token := w.entrant()
	var entered, refused int
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			_, err := w.Enter(context.Background(), tenantA, token, device("test"))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				entered++
			case errors.Is(err, ErrToken):
				refused++
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if entered != 1 || refused != 19 {
		t.Errorf("%d entered, %d were refused", entered, refused)
	}
}

// The actor of the events of an entry is the managed user, whatever the actor of the request was.
func TestEntryIsOfTheManagedUser(t *testing.T) {
	w := open(t)
	w.origins.set(session.Session{ID: bossOrigin.SessionID, UserID: bossOrigin.UserID, AuthTime: w.now()})
	u, token := w.entrant()
	_, err := w.Enter(t.Context(), tenantA, token, device("test"))
	w.must(err)
	log, err := eventlog.Open(eventlog.Config{DB: w.db})
	w.must(err)
	n := 0
	w.must(log.All(t.Context(), tenantA.ID, func(e eventlog.Event) error {
		n++
		if e.Origin.Actor != (eventlog.Actor{Type: schema.UserType, ID: u.ID}) {
			t.Errorf("the actor of %s is %+v", e.Type, e.Origin.Actor)
		}
		return nil
	}))
	if n != 2 {
		t.Errorf("%d events", n)
	}
}
