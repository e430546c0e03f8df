package authn

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"stonetown/identity"
	"stonetown/identity/factor"
	"stonetown/identity/password"
	"stonetown/identity/session"
	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
)

func TestNewRequiresDependencies(t *testing.T) {
	if s, err := New(Config{}); s != nil || err == nil {
		t.Errorf("a service without dependencies: %v", err)
	}
}

// A sign-in with the correct password ends in the step that the state of the account requires.
func TestSignIn(t *testing.T) {
	w := open(t)
	w.user("active@example.com")
	w.user("disabled@example.com", func(u *identity.User) { u.State = identity.Disabled })
	w.user("pending@example.com", func(u *identity.User) { u.State, u.EmailVerified = identity.Pending, false })
	w.user("reset@example.com", func(u *identity.User) { u.PasswordMustBeReset = true })
	w.user("enrol@example.com", func(u *identity.User) { u.MustEnrol = true })
	w.user("passwordless@example.com", func(u *identity.User) { u.SetPassword("") })
	for _, c := range []struct {
		email, password string
		want            Status
		err             error
	}{
		{"active@example.com", plain, Complete, nil},
		{"ACTIVE@example.com", plain, Complete, nil},
		{"active@example.com", "wrong", "", ErrCredentials},
		{"unknown@example.com", plain, "", ErrCredentials},
		{"passwordless@example.com", "", "", ErrCredentials},
		{"disabled@example.com", plain, "", ErrDisabled},
		{"disabled@example.com", "wrong", "", ErrCredentials},
		{"pending@example.com", plain, EmailRequired, nil},
		{"reset@example.com", plain, PasswordRequired, nil},
		{"enrol@example.com", plain, EnrolmentRequired, nil},
	} {
		r, err := w.SignIn(t.Context(), tenantA, c.email, c.password, device("test"))
		if r.Status != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s, %q: %q, %v, want %q, %v", c.email, c.password, r.Status, err, c.want, c.err)
		}
		inSession := c.want == Complete || c.want == EnrolmentRequired
		if (r.Token != "") != inSession || (r.Continue != "") != (err == nil && !inSession) || r.Session.MustEnrol != (c.want == EnrolmentRequired) {
			t.Errorf("%s: %+v", c.email, r)
		}
	}
	w.wantEvents(map[eventlog.Type]int{eventlog.UserSignedIn: 3, eventlog.SessionCreated: 3, eventlog.UserSignInFailed: 4})

	r := w.signIn("active@example.com")
	s, err := w.ByToken(t.Context(), tenantA.ID, r.Token)
	if err != nil || s.ID != r.Session.ID || !slices.Equal(s.Methods, []string{"pwd"}) || !s.SecondFactor.IsZero() {
		t.Errorf("%+v, %v", s, err)
	}
	if at := w.stored(r.User).LastSignedInAt; time.Since(at) > time.Minute {
		t.Errorf("last signed in at %v", at)
	}
}

// Parallel and consecutive failures are limited by account, and a success resets the count.
func TestAttemptsAreLimited(t *testing.T) {
	w := open(t)
	w.user("ann@example.com")
	for _, email := range []string{"ann@example.com", "unknown@example.com"} {
		try := func(plain string) error {
			_, err := w.SignIn(t.Context(), tenantA, email, plain, device("test"))
			return err
		}
		for range freeFailures {
			w.wantErr(email, try("wrong"), ErrCredentials)
		}
		wait := w.slowDown(email, try(plain)).RetryAfter
		if wait <= 0 || wait > time.Second {
			t.Errorf("%s: wait %v after %d failures", email, wait, freeFailures)
		}
		for n := freeFailures; n < alarmAt+2; n++ {
			w.advance(min(time.Second<<(n-freeFailures), maxWait))
			w.wantErr(email, try("wrong"), ErrCredentials)
		}
		if wait := w.slowDown(email, try(plain)).RetryAfter; wait > maxWait || wait <= maxWait/2 {
			t.Errorf("%s: wait %v after many failures", email, wait)
		}
	}
	w.wantEvents(map[eventlog.Type]int{eventlog.UserLocked: 2, eventlog.SecurityBruteForceDetected: 2})

	w.advance(maxWait)
	w.signIn("ann@example.com")
	for range freeFailures { // none of them is refused after a success
		_, err := w.SignIn(t.Context(), tenantA, "ann@example.com", "wrong", device("test"))
		w.wantErr("after a success", err, ErrCredentials)
	}
	w.advance(forgetAfter + time.Second)
	w.must(w.deleteExpired(t.Context()))
	var rows int64
	w.must(w.db.QueryRow(t.Context(), `SELECT COUNT(*) FROM sign_in_attempts`).Scan(&rows))
	if rows != 0 {
		t.Errorf("%d rows of attempts are left", rows)
	}
}

// A sign-in replaces a hash of another system.
func TestSignInReplacesImportedHash(t *testing.T) {
	w := open(t)
	other, err := bcrypt.GenerateFromPassword([]byte(plain), bcrypt.MinCost)
	w.must(err)
	hash, err := password.ImportHash(password.Bcrypt, string(other))
	w.must(err)
	u := w.user("ann@example.com", func(u *identity.User) { u.SetPassword(hash) })
	w.signIn("ann@example.com")
	if now := w.stored(u).PasswordHash; !now.Current() {
		t.Error("the imported hash is not replaced")
	}
	w.signIn("ann@example.com")
}

// An account can change between the proof of the password and the session.
func TestSessionRequiresCurrentPassword(t *testing.T) {
	w := open(t)
	u := w.user("ann@example.com")
	changed := func(change func(*identity.User)) {
		w.must(w.db.Tx(t.Context(), func(tx *sqldb.Tx) error {
			_, err := w.users.UpdateIn(t.Context(), tx, tenantA.ID, u.ID, change)
			return err
		}))
	}
	before := w.stored(u)
	changed(func(u *identity.User) { u.SetPassword("another") })
	_, err := w.proceed(t.Context(), tenantA, before, proof{Methods: []string{"pwd"}}, Device{})
	w.wantErr("with another password", err, ErrCredentials)
	before = w.stored(u)
	changed(func(u *identity.User) { u.State = identity.Disabled })
	_, err = w.proceed(t.Context(), tenantA, before, proof{Methods: []string{"pwd"}}, Device{})
	w.wantErr("disabled meanwhile", err, ErrDisabled)
	_, err = w.resume(t.Context(), tenantA, w.stored(u), proof{}, Device{})
	w.wantErr("with a token of a disabled user", err, ErrToken)
}

// A sign-in on a new device is reported to the user, and one on a known device is not.
func TestNewDeviceIsReported(t *testing.T) {
	w := open(t)
	w.user("ann@example.com")
	on := func(agent string) {
		_, err := w.SignIn(t.Context(), tenantA, "ann@example.com", plain, device(agent))
		w.must(err)
	}
	const phone = "Mozilla/5.0 (iPhone) Mobile/1"
	on("Mozilla/5.0 Firefox/1.0")
	w.silence("the first device")
	on("Mozilla/5.0 Firefox/2.0")
	w.silence("a new version of the same browser")
	on(phone)
	mail := w.mail("ann@example.com", "New sign-in")
	for _, want := range []string{"Device: Phone", "Place: Berlin, DE", "192.0.2.1", "https://a.test/account/sessions"} {
		if !strings.Contains(mail.Text, want) {
			t.Errorf("the mail does not contain %q:\n%s", want, mail.Text)
		}
	}
	if strings.Contains(mail.Text, "iPhone") {
		t.Error("the mail quotes the user agent")
	}
	w.refuse("sign_in_mail")
	on("another")
	w.silence("beyond the limit")
	w.wantEvents(map[eventlog.Type]int{eventlog.SecurityNewDeviceSignIn: 2})
}

func TestSessions(t *testing.T) {
	w := open(t)
	w.user("ann@example.com")
	a, b, c := w.signIn("ann@example.com"), w.signIn("ann@example.com"), w.signIn("ann@example.com")
	userID := a.User.ID
	all, err := w.Sessions(t.Context(), tenantA.ID, userID)
	if err != nil || len(all) != 3 {
		t.Errorf("%d sessions, %v", len(all), err)
	}
	w.must(w.EndSession(t.Context(), tenantA.ID, userID, a.Session.ID, session.EndedByUser))
	w.wantErr("ending it again", w.EndSession(t.Context(), tenantA.ID, userID, a.Session.ID, session.EndedByUser), session.ErrEnded)
	w.wantErr("ending a session of another user", w.EndSession(t.Context(), tenantA.ID, "usr_other", b.Session.ID, session.EndedByUser), session.ErrEnded)
	if w.live(a.Session) || !w.live(b.Session) {
		t.Error("the wrong session ended")
	}
	live, err := w.LiveSessions(t.Context(), tenantA.ID, []string{a.Session.ID, b.Session.ID})
	if err != nil || len(live) != 1 || live[0].ID != b.Session.ID {
		t.Errorf("%+v, %v", live, err)
	}
	w.must(w.EndSessions(t.Context(), tenantA.ID, userID, c.Session.ID, session.EndedByUser))
	if w.live(b.Session) || !w.live(c.Session) {
		t.Error("not all sessions except one ended")
	}
	d := w.signIn("ann@example.com")
	w.must(w.SignOut(t.Context(), c.Session, false))
	if w.live(c.Session) || !w.live(d.Session) {
		t.Error("signing out ended the wrong session")
	}
	e := w.signIn("ann@example.com")
	w.must(w.SignOut(t.Context(), d.Session, true))
	if w.live(d.Session) || w.live(e.Session) {
		t.Error("signing out everywhere left a session")
	}
	w.wantEvents(map[eventlog.Type]int{eventlog.SessionRevoked: 5, eventlog.UserSignedOut: 2})
}

// A remembered device skips the second factor until the password changes.
func TestRememberedDevice(t *testing.T) {
	w := open(t)
	u := w.user("ann@example.com")
	app := w.addTOTP(u)
	d := device("test")
	d.Remember = true
	r := w.signIn("ann@example.com")
	r, err := w.VerifyFactor(t.Context(), tenantA, r.Continue, Answer{Kind: factor.TOTP, Code: app.next()}, d)
	w.must(err)
	if r.Status != Complete || r.Device == "" {
		t.Fatalf("%+v", r)
	}
	known := device("test")
	known.Token = r.Device
	again, err := w.SignIn(t.Context(), tenantA, "ann@example.com", plain, known)
	if err != nil || again.Status != Complete {
		t.Errorf("on the remembered device: %s, %v", again.Status, err)
	}
	w.user("bob@example.com")
	bob, err := w.SignIn(t.Context(), tenantA, "bob@example.com", plain, known)
	if err != nil || bob.Status != Complete {
		t.Errorf("another user: %s, %v", bob.Status, err)
	}
	w.must(w.ChangePassword(t.Context(), tenantA, again.Session, plain, "another horse battery"))
	again, err = w.SignIn(t.Context(), tenantA, "ann@example.com", "another horse battery", known)
	if err != nil || again.Status != MFARequired {
		t.Errorf("after another password: %s, %v", again.Status, err)
	}
	known.Token = "unknown"
	again, err = w.SignIn(t.Context(), tenantA, "ann@example.com", "another horse battery", known)
	if err != nil || again.Status != MFARequired {
		t.Errorf("with an unknown token: %s, %v", again.Status, err)
	}
}

// A breached password that is in use is reported to its user once.
func TestBreachedPasswordIsReported(t *testing.T) {
	w := open(t)
	u := w.user("ann@example.com")
	w.signIn("ann@example.com")
	w.silence("a password that is not listed")
	if at := w.stored(u).PasswordCheckAt; at.IsZero() {
		t.Error("the check is not recorded")
	}
	w.password.Store(plain)
	w.signIn("ann@example.com")
	w.silence("before the next check is due")
	w.advance(31 * 24 * time.Hour)
	w.signIn("ann@example.com")
	mail := w.mail("ann@example.com", "Please change your Example password")
	if !strings.Contains(mail.Text, "https://a.test/account/password") {
		t.Errorf("the mail has no link to the password:\n%s", mail.Text)
	}
	w.advance(31 * 24 * time.Hour)
	w.signIn("ann@example.com")
	w.silence("the second time")
	w.wantEvents(map[eventlog.Type]int{eventlog.SecurityBreachedPasswordUsed: 1})
}
