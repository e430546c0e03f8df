package authn

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"stonetown/identity"
	"stonetown/identity/external"
	"stonetown/identity/factor"
	"stonetown/identity/session"
	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
)

// assertion is one about ann, whose address the provider has verified.
func assertion() Assertion {
	return Assertion{
		ConnectionID: "con_a", Slug: "a", Kind: "oidc", Subject: "ann", Email: "ann@example.com", EmailVerified: true,
		Profile: identity.Profile{Name: "Ann"}, ProviderID: "sid", Hint: "hint", Provision: true, Link: LinkVerified,
	}
}

func (w *world) federated(a Assertion) (Result, error) {
	return w.SignInFederated(w.Context(), tenantA, a, device("test"))
}

// The first sign-in creates an account, and the next ones find it by the subject, whatever the
// address is then.
func TestFederatedSignIn(t *testing.T) {
	w := open(t)
	first, err := w.federated(assertion())
	w.must(err)
	if u := first.User; first.Status != Complete || u.Email != "ann@example.com" || u.Name != "Ann" || !u.EmailVerified || u.State != identity.Active {
		t.Errorf("%+v", first)
	}
	if !slices.Equal(first.Session.Methods, []string{"fed"}) || !first.Session.SecondFactor.IsZero() {
		t.Errorf("session %+v", first.Session)
	}
	at, err := w.external.SessionOf(t.Context(), tenantA.ID, first.Session.ID)
	if err != nil || at.ConnectionID != "con_a" || at.Subject != "ann" || at.ProviderID != "sid" || at.Hint != "hint" {
		t.Errorf("session at the provider: %+v, %v", at, err)
	}
	a := assertion()
	a.Email, a.Provision, a.SecondFactor = "new@example.com", false, true
	again, err := w.federated(a)
	w.must(err)
	if again.User.ID != first.User.ID || again.User.Email != "ann@example.com" || again.Session.SecondFactor.IsZero() || !slices.Equal(again.Session.Methods, []string{"fed", "mfa"}) {
		t.Errorf("again: %+v", again)
	}
	have, err := w.Identities(t.Context(), tenantA.ID, first.User.ID)
	if err != nil || len(have) != 1 || have[0].Email != "new@example.com" || have[0].LastUsedAt.IsZero() {
		t.Errorf("identities: %+v, %v", have, err)
	}
	w.wantEvents(map[eventlog.Type]int{eventlog.UserCreated: 1, eventlog.UserSignedUp: 1, eventlog.UserIdentityLinked: 1, eventlog.SessionCreated: 2})

	// The address of an account belongs to one of the subjects only.
	other := assertion()
	other.Subject, other.Email = "mallory", "new@example.com"
	r, err := w.federated(other)
	if err != nil || r.User.ID == first.User.ID {
		t.Errorf("another subject: %+v, %v", r, err)
	}

	// The end of the session removes what is known of the one at the provider.
	w.must(w.SignOut(t.Context(), first.Session, true))
	left := int64(1)
	for end := time.Now().Add(30 * time.Second); left > 0 && time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		w.must(w.db.QueryRow(t.Context(), `SELECT COUNT(*) FROM external_sessions WHERE subject = 'ann'`).Scan(&left))
	}
	if left != 0 {
		t.Errorf("%d sessions at the provider are left", left)
	}
}

// An identity is linked without a proof of the account only if both sides have verified the address.
func TestFederatedLinking(t *testing.T) {
	for name, c := range map[string]struct {
		change     func(*Assertion)
		unverified bool // the address of the account
		status     Status
		err        error
	}{
		"both verified":         {status: Complete},
		"another case":          {change: func(a *Assertion) { a.Email = "ANN@example.com" }, status: Complete},
		"provider has not":      {change: func(a *Assertion) { a.EmailVerified = false }, status: LinkRequired},
		"account has not":       {unverified: true, status: LinkRequired},
		"policy always_prompt":  {change: func(a *Assertion) { a.Link = LinkPrompt }, status: LinkRequired},
		"policy never":          {change: func(a *Assertion) { a.Link = LinkNever }, err: ErrAccountExists},
		"no policy":             {change: func(a *Assertion) { a.Link = "" }, status: LinkRequired},
		"without provisioning":  {change: func(a *Assertion) { a.Provision = false }, status: Complete},
		"unknown address":       {change: func(a *Assertion) { a.Email, a.Provision = "bob@example.com", false }, err: ErrNotProvisioned},
		"no address":            {change: func(a *Assertion) { a.Email = "" }, err: ErrNoEmail},
		"invalid address":       {change: func(a *Assertion) { a.Email = "ann" }, err: ErrNoEmail},
		"neither, and no proof": {change: func(a *Assertion) { a.Email, a.Provision = "", false }, err: ErrNotProvisioned},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t)
			w.settings(func(s *identity.Settings) { s.RequireVerifiedEmail = false })
			u := w.user("ann@example.com", func(u *identity.User) { u.VerifyEmail(!c.unverified) })
			a := assertion()
			if c.change != nil {
				c.change(&a)
			}
			r, err := w.federated(a)
			w.wantErr("sign-in", err, c.err)
			if r.Status != c.status || c.status != "" && r.User.ID != u.ID {
				t.Errorf("%+v, want %s", r, c.status)
			}
			have, err := w.Identities(t.Context(), tenantA.ID, u.ID)
			if err != nil || (len(have) == 1) != (c.status == Complete) {
				t.Errorf("identities: %+v, %v", have, err)
			}
			if c.status == LinkRequired && (r.Token != "" || r.Continue == "") {
				t.Errorf("tokens: %+v", r)
			}
		})
	}
}

// The proof of an account links, together with all factors that the account requires.
func TestFederatedLinkingWithProof(t *testing.T) {
	w := open(t)
	u := w.user("ann@example.com")
	app := w.addTOTP(u)
	a := assertion()
	a.Link, a.SecondFactor = LinkPrompt, true
	begin := func() string {
		t.Helper()
		r, err := w.federated(a)
		w.must(err)
		return r.Continue
	}
	linked := func() int {
		have, err := w.Identities(t.Context(), tenantA.ID, u.ID)
		w.must(err)
		return len(have)
	}
	token := begin()
	_, err := w.LinkWithPassword(t.Context(), tenantA, token, "wrong", device("test"))
	w.wantErr("a wrong password", err, ErrCredentials)
	r, err := w.LinkWithPassword(t.Context(), tenantA, token, plain, device("test"))
	w.must(err)
	// The provider's second factor does not count for the account.
	if r.Status != MFARequired || linked() != 0 {
		t.Fatalf("%+v, %d linked", r, linked())
	}
	_, err = w.LinkWithPassword(t.Context(), tenantA, token, plain, device("test"))
	w.wantErr("a used token", err, ErrToken)
	done, err := w.VerifyFactor(t.Context(), tenantA, r.Continue, Answer{Kind: factor.TOTP, Code: app.next()}, device("test"))
	if err != nil || done.Status != Complete || linked() != 1 {
		t.Fatalf("%+v, %v, %d linked", done, err, linked())
	}
	w.mail("ann@example.com", "was linked")
	w.wantEvents(map[eventlog.Type]int{eventlog.UserIdentityLinked: 1})
	if _, err := w.external.SessionOf(t.Context(), tenantA.ID, done.Session.ID); err != nil {
		t.Errorf("session at the provider: %v", err)
	}

	// A passkey is a proof, too, if it is that of the account.
	w.must(w.Unlink(t.Context(), tenantA.ID, u.ID, "con_a"))
	other := w.user("bob@example.com")
	keys := map[string]*authenticator{}
	for _, u := range []identity.User{u, other} {
		keys[u.ID], _ = w.addPasskey(u)
	}
	token = begin()
	with := func(owner identity.User) (Result, error) {
		begun, err := w.BeginPasskey(t.Context(), tenantA, "")
		w.must(err)
		return w.LinkWithPasskey(t.Context(), tenantA, token, begun.ID, keys[owner.ID].get(t, begun.Options), device("test"))
	}
	_, err = with(other)
	w.wantErr("the passkey of another user", err, ErrToken)
	if r, err = with(u); err != nil || r.Status != Complete || linked() != 1 {
		t.Errorf("%+v, %v, %d linked", r, err, linked())
	}
}

// A sign-in cannot be completed with an identity that was removed meanwhile.
func TestFederatedSignInAfterUnlink(t *testing.T) {
	w := open(t)
	u := w.user("ann@example.com")
	w.must(w.Link(t.Context(), assertion().identity(tenantA.ID, u.ID)))
	app := w.addTOTP(u)
	r, err := w.federated(assertion())
	w.must(err)
	if r.Status != MFARequired {
		t.Fatalf("%+v", r)
	}
	w.must(w.Unlink(t.Context(), tenantA.ID, u.ID, "con_a"))
	_, err = w.VerifyFactor(t.Context(), tenantA, r.Continue, Answer{Kind: factor.TOTP, Code: app.next()}, device("test"))
	w.wantErr("the second factor", err, ErrCredentials)
}

// A sign-in that waits for its next step ends if its connection is disabled or deleted meanwhile, and
// nothing is linked. Its groups are reported with the session, and not before.
func TestFederatedSignInAfterDisabling(t *testing.T) {
	w := open(t)
	u := w.user("ann@example.com")
	app := w.addTOTP(u)
	before, err := w.Sessions(t.Context(), tenantA.ID, u.ID)
	w.must(err)
	a := assertion()
	a.Link, a.Groups = LinkPrompt, []string{"grp_a", "grp_b"}
	prove := func() (Result, error) {
		t.Helper()
		r, err := w.federated(a)
		w.must(err)
		if r, err = w.LinkWithPassword(t.Context(), tenantA, r.Continue, plain, device("test")); err != nil || r.Status != MFARequired {
			t.Fatalf("%+v, %v", r, err)
		}
		if len(w.at.began) > 0 {
			t.Errorf("before the second factor: %q", w.at.began)
		}
		w.advance(30 * time.Second) // to the next code
		return w.VerifyFactor(t.Context(), tenantA, r.Continue, Answer{Kind: factor.TOTP, Code: app.next()}, device("test"))
	}
	w.at.not = []string{"con_a"}
	_, err = prove()
	w.wantErr("the second factor", err, ErrToken)
	have, err := w.Identities(t.Context(), tenantA.ID, u.ID)
	w.must(err)
	sessions, err := w.Sessions(t.Context(), tenantA.ID, u.ID)
	if err != nil || len(have) != 0 || len(sessions) != len(before) || len(w.at.began) != 0 {
		t.Errorf("identities %v, sessions %v, %v, began %q", have, sessions, err, w.at.began)
	}
	w.at.not = nil
	if r, err := prove(); err != nil || r.Status != Complete {
		t.Fatalf("%+v, %v", r, err)
	}
	if want := tenantA.ID + " con_a " + u.ID + " grp_a,grp_b"; !slices.Equal(w.at.began, []string{want}) {
		t.Errorf("began %q, want %q", w.at.began, want)
	}
	bob := assertion()
	bob.Subject, bob.Email = "bob", "bob@example.com"
	w.at.not = []string{"con_a"}
	_, err = w.federated(bob)
	w.wantErr("without another step", err, ErrToken)
}

// A session has the time of the authentication at the provider, and an accepted second factor is as
// old. A factor that is proved here is new.
func TestFederatedAuthTime(t *testing.T) {
	w := open(t)
	before := w.now().Add(-time.Hour)
	a := assertion()
	a.AuthTime, a.SecondFactor = before, true
	r, err := w.federated(a)
	w.must(err)
	if s := r.Session; !s.AuthTime.Equal(before) || !s.SecondFactor.Equal(before) || w.SteppedUp(s.SecondFactor) || s.CreatedAt.Equal(before) {
		t.Errorf("accepted: %+v", s)
	}
	w.must(w.MayAddFactor(t.Context(), r.Session)) // the sign-in here is recent
	r.Session.CreatedAt = before
	w.wantErr("an old sign-in", w.MayAddFactor(t.Context(), r.Session), ErrStepUp)
	a.AuthTime = w.now().Add(-time.Minute)
	if r, err = w.federated(a); err != nil || !w.SteppedUp(r.Session.SecondFactor) {
		t.Errorf("recent: %+v, %v", r, err)
	}
	app := w.addTOTP(r.User)
	a.SecondFactor = false
	if r, err = w.federated(a); err != nil || r.Status != MFARequired {
		t.Fatalf("%+v, %v", r, err)
	}
	r, err = w.VerifyFactor(t.Context(), tenantA, r.Continue, Answer{Kind: factor.TOTP, Code: app.next()}, device("test"))
	if err != nil || !r.Session.AuthTime.Equal(r.Session.CreatedAt) || !r.Session.SecondFactor.Equal(r.Session.CreatedAt) {
		t.Errorf("proved here: %+v, %v", r.Session, err)
	}
}

// A disabled user cannot sign in at a connection, linked or not.
func TestFederatedSignInOfDisabled(t *testing.T) {
	w := open(t)
	u := w.user("ann@example.com", func(u *identity.User) { u.State = identity.Disabled })
	_, err := w.federated(assertion())
	w.wantErr("not linked", err, ErrDisabled)
	w.must(w.db.Tx(t.Context(), func(tx *sqldb.Tx) error {
		_, err := w.external.Link(t.Context(), tx, assertion().identity(tenantA.ID, u.ID))
		return err
	}))
	_, err = w.federated(assertion())
	w.wantErr("linked", err, ErrDisabled)
}

// A sign-out at a provider ends the sessions that began there: of a session of the provider, of a
// subject, or of both.
func TestEndAtProvider(t *testing.T) {
	w := open(t)
	begin := func(connection, subject, sid string) session.Session {
		t.Helper()
		a := assertion()
		a.ConnectionID, a.Slug, a.Subject, a.Email, a.ProviderID = connection, connection, subject, subject+"@example.com", sid
		r, err := w.federated(a)
		w.must(err)
		return r.Session
	}
	alive := func(s session.Session) bool {
		t.Helper()
		_, err := w.ByID(t.Context(), tenantA.ID, s.ID)
		if err != nil && !errors.Is(err, session.ErrEnded) {
			t.Fatal(err)
		}
		return err == nil
	}
	for _, test := range []struct {
		what string
		at   AtProvider
		want string // the sessions that end
	}{
		{"a session of the provider", AtProvider{ConnectionID: "con_a", ProviderIDs: []string{"s1"}}, "ann1 bob1"},
		{"a session of a subject", AtProvider{ConnectionID: "con_a", Subject: "ann", ProviderIDs: []string{"s1"}}, "ann1"},
		{"sessions of a subject", AtProvider{ConnectionID: "con_a", Subject: "ann", ProviderIDs: []string{"s1", "s2", "s3"}}, "ann1 ann2"},
		{"a subject", AtProvider{ConnectionID: "con_a", Subject: "ann"}, "ann1 ann2"},
		{"an unknown session", AtProvider{ConnectionID: "con_a", Subject: "ann", ProviderIDs: []string{"s3"}}, ""},
		{"no session", AtProvider{ConnectionID: "con_a", Subject: "ann", ProviderIDs: []string{""}}, ""},
		{"an unknown subject", AtProvider{ConnectionID: "con_a", Subject: "cid"}, ""},
		{"another connection", AtProvider{ConnectionID: "con_b", Subject: "ann"}, "other"},
		{"nobody", AtProvider{ConnectionID: "con_a"}, ""},
	} {
		all := map[string]session.Session{
			"ann1": begin("con_a", "ann", "s1"), "ann2": begin("con_a", "ann", "s2"), "bob1": begin("con_a", "bob", "s1"), "other": begin("con_b", "ann", "s1"),
		}
		refused := errors.New("refused")
		w.wantErr(test.what, w.EndAtProvider(t.Context(), tenantA.ID, test.at, func(context.Context, *sqldb.Tx) error { return refused }), refused)
		for name, s := range all {
			if !alive(s) {
				t.Errorf("%s: %s ended, although it was refused", test.what, name)
			}
		}
		w.must(w.EndAtProvider(t.Context(), tenantA.ID, test.at, func(context.Context, *sqldb.Tx) error { return nil }))
		for name, s := range all {
			if ends := slices.Contains(strings.Fields(test.want), name); alive(s) == ends {
				t.Errorf("%s: %s ended: %t", test.what, name, !ends)
			}
			w.must(w.SignOut(t.Context(), s, false))
		}
	}
}

// The sessions that began at a session of a provider are found by it.
func TestSessionsAtProvider(t *testing.T) {
	w := open(t)
	begin := func(sid string) string {
		a := assertion()
		a.ProviderID = sid
		r, err := w.federated(a)
		w.must(err)
		return r.Session.ID
	}
	one, two, three := begin("s1"), begin("s1"), begin("s2")
	check := func(what string, got []string, err error, want ...string) {
		t.Helper()
		slices.Sort(want)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v, want %v", what, got, err, want)
		}
	}
	got, err := w.external.SessionsAt(t.Context(), tenantA.ID, "con_a", "ann", "")
	check("all", got, err, one, two, three)
	got, err = w.external.SessionsAt(t.Context(), tenantA.ID, "con_a", "ann", "s1")
	check("of a session", got, err, one, two)
	got, err = w.external.SessionsBy(t.Context(), tenantA.ID, "con_a", "s2")
	check("by a session", got, err, three)
	got, err = w.external.SessionsBy(t.Context(), tenantA.ID, "con_b", "s2")
	check("another connection", got, err)
	_, err = w.external.SessionOf(t.Context(), tenantA.ID, "ses_unknown")
	w.wantErr("an unknown session", err, external.ErrNotFound)
	w.advance(400 * 24 * time.Hour)
	w.must(w.external.DeleteExpired(t.Context()))
	got, err = w.external.SessionsAt(t.Context(), tenantA.ID, "con_a", "ann", "")
	check("after they expired", got, err)
}
