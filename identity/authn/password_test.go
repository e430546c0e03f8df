package authn

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"stonetown/identity"
	"stonetown/identity/factor"
	"stonetown/identity/password"
	"stonetown/internal/eventlog"
)

const next = "another horse battery"

// wantPolicy fails unless err is a [*password.PolicyError] with a violation.
func (w *world) wantPolicy(what string, err error, rule password.Rule) {
	w.Helper()
	if policy, ok := errors.AsType[*password.PolicyError](err); !ok || !slices.Contains(policy.Violations, rule) {
		w.Errorf("%s: %v, want a violation of %s", what, err, rule)
	}
}

func TestChangePassword(t *testing.T) {
	w := open(t)
	w.user("ann@example.com")
	w.password.Store("a listed password")
	current, other := w.signIn("ann@example.com"), w.signIn("ann@example.com")
	change := func(present, next string) error {
		return w.ChangePassword(t.Context(), tenantA, current.Session, present, next)
	}
	w.wantErr("a wrong current password", change("wrong", next), ErrPassword)
	w.wantPolicy("a short password", change(plain, "short"), password.RuleMinLength)
	w.wantPolicy("a listed password", change(plain, "a listed password"), password.RuleBreached)
	if !w.live(other.Session) {
		t.Error("a refused change ended a session")
	}
	w.must(change(plain, next))
	if !w.live(current.Session) || w.live(other.Session) {
		t.Error("not the other sessions ended")
	}
	w.mail("ann@example.com", "password was changed")
	_, err := w.SignIn(t.Context(), tenantA, "ann@example.com", plain, Device{})
	w.wantErr("the old password", err, ErrCredentials)
	for range freeFailures {
		err = change("wrong", next)
	}
	w.slowDown("too many failures", err)
	w.wantEvents(map[eventlog.Type]int{eventlog.UserPasswordChanged: 1, eventlog.SessionRevoked: 1, eventlog.SecurityBreachedPasswordUsed: 1})

	bob := w.user("bob@example.com", func(u *identity.User) { u.SetPassword("") })
	w.wantErr("a user without a password", w.ChangePassword(t.Context(), tenantA, w.sessionOf(bob), plain, next), ErrNoPassword)
}

func TestForgottenPassword(t *testing.T) {
	w := open(t)
	u := w.user("ann@example.com", func(u *identity.User) { u.State, u.EmailVerified = identity.Pending, false })
	w.user("disabled@example.com", func(u *identity.User) { u.State = identity.Disabled })
	w.must(w.Forgot(t.Context(), tenantA, "unknown@example.com", ""))
	w.must(w.Forgot(t.Context(), tenantA, "disabled@example.com", ""))
	w.refuse("reset")
	w.must(w.Forgot(t.Context(), tenantA, "ann@example.com", "")) // the response is the same
	w.silence("no account, a disabled account, beyond the limit")
	w.refuse("")

	w.must(w.Forgot(t.Context(), tenantA, "Ann@Example.com", "/device?x=y"))
	mail := w.mail("ann@example.com", "Choose a new password")
	if !strings.Contains(mail.Text, "https://a.test/auth/reset-password?token=") || !strings.Contains(mail.Text, "&next=%2Fdevice%3Fx%3Dy\n") {
		t.Errorf("%s", mail.Text)
	}
	w.must(w.Forgot(t.Context(), tenantA, "ann@example.com", ""))
	token := w.link("ann@example.com", "Choose a new password")
	link, err := w.ReadLink(t.Context(), tenantA, token)
	if err != nil || link.Purpose != NewPassword || link.Email != "ann@example.com" {
		t.Errorf("%+v, %v", link, err)
	}
	reset := func(token, plain string) (Result, error) {
		return w.ResetPassword(t.Context(), tenantA, token, plain, device("test"))
	}
	_, err = reset("unknown", next)
	w.wantErr("an unknown token", err, ErrToken)
	_, err = reset(token, "short")
	w.wantPolicy("a short password", err, password.RuleMinLength)
	old := w.sessionOf(w.user("bob@example.com"))
	r, err := reset(token, next)
	if err != nil || r.Status != Complete || r.User.State != identity.Active || !r.User.EmailVerified {
		t.Errorf("%+v, %v", r, err)
	}
	if !w.live(old) || !w.live(r.Session) {
		t.Error("a session of another user ended")
	}
	_, err = reset(token, next)
	w.wantErr("the token again", err, ErrToken)
	_, err = w.ReadLink(t.Context(), tenantA, token)
	w.wantErr("the used link", err, ErrToken)
	w.mail("ann@example.com", "password was changed")
	w.wantEvents(map[eventlog.Type]int{
		eventlog.UserPasswordResetRequested: 2, eventlog.UserPasswordResetCompleted: 1, eventlog.UserEmailVerified: 1, eventlog.UserActivated: 1,
	})

	// An administrator sends the same link. It ends sessions and still asks for the factor.
	a := w.addTOTP(u)
	session := w.sessionOf(u)
	w.must(w.SendReset(t.Context(), tenantA.ID, u.ID))
	w.wantErr("an unknown user", w.SendReset(t.Context(), tenantA.ID, "unknown"), identity.ErrUserNotFound)
	token = w.link("ann@example.com", "Choose a new password")
	r, err = reset(token, plain)
	if err != nil || r.Status != MFARequired || w.live(session) {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err = w.VerifyFactor(t.Context(), tenantA, r.Continue, Answer{Kind: factor.TOTP, Code: a.next()}, device("test")); err != nil || r.Status != Complete {
		t.Errorf("%s, %v", r.Status, err)
	}

	// The link expires.
	w.must(w.SendReset(t.Context(), tenantA.ID, u.ID))
	token = w.link("ann@example.com", "Choose a new password")
	w.advance(resetFor)
	_, err = reset(token, next)
	w.wantErr("an expired token", err, ErrToken)
	w.must(w.deleteExpired(t.Context()))
	var rows int64
	w.must(w.db.QueryRow(t.Context(), `SELECT COUNT(*) FROM onetime_tokens`).Scan(&rows))
	if rows != 0 {
		t.Errorf("%d tokens are left", rows)
	}
}

// A password that must be replaced is replaced during the sign-in, which then continues.
func TestForcedReset(t *testing.T) {
	w := open(t)
	u := w.user("ann@example.com", func(u *identity.User) { u.PasswordMustBeReset, u.EmailVerified = true, false })
	r := w.signIn("ann@example.com")
	if r.Status != PasswordRequired || r.ExpiresAt.Sub(w.now()) > mfaFor {
		t.Fatalf("%+v", r)
	}
	done, err := w.ResetPassword(t.Context(), tenantA, r.Continue, next, device("test"))
	if err != nil || done.Status != Complete || !slices.Equal(done.Session.Methods, []string{"pwd"}) {
		t.Errorf("%+v, %v", done, err)
	}
	if now := w.stored(u); now.PasswordMustBeReset || now.EmailVerified {
		t.Errorf("%+v", now)
	}
	w.wantEvents(map[eventlog.Type]int{eventlog.UserPasswordChanged: 1, eventlog.UserPasswordResetCompleted: 0})

	w.change(u, func(u *identity.User) { u.PasswordMustBeReset = true })
	r, err = w.SignIn(t.Context(), tenantA, "ann@example.com", next, device("test"))
	w.must(err)
	w.change(u, func(u *identity.User) { u.State = identity.Disabled })
	_, err = w.ResetPassword(t.Context(), tenantA, r.Continue, plain, device("test"))
	w.wantErr("a user who was disabled meanwhile", err, ErrToken)
}

func TestSignUp(t *testing.T) {
	w := open(t)
	owner := w.user("ann@example.com")
	signUp := func(n NewAccount) error { return w.SignUp(t.Context(), tenantA, n) }
	w.wantErr("an invalid address", signUp(NewAccount{Email: "x", Password: plain}), identity.ErrEmailInvalid)
	w.wantPolicy("the address as password", signUp(NewAccount{Email: "new.person@example.com", Password: "new.person@example.com"}), password.RuleContainsIdentifier)

	w.must(signUp(NewAccount{Email: "new@example.com", Password: plain, Profile: identity.Profile{Name: "New"}, Next: "/device"}))
	mail := w.mail("new@example.com", "Confirm your e-mail address")
	if !strings.Contains(mail.Text, "&next=%2Fdevice\n") {
		t.Errorf("%s", mail.Text)
	}
	u, err := w.users.UserByEmail(t.Context(), tenantA.ID, "new@example.com")
	if err != nil || u.State != identity.Pending || u.Name != "New" {
		t.Errorf("%+v, %v", u, err)
	}
	if r := w.signIn("new@example.com"); r.Status != EmailRequired {
		t.Errorf("before the address is verified: %s", r.Status)
	}

	// The owner of an existing account is notified, within a limit.
	w.must(signUp(NewAccount{Email: "ANN@example.com", Password: next, Next: "/device"}))
	if mail := w.mail("ann@example.com", "You have an account"); !strings.Contains(mail.Text, "https://a.test/auth/sign-in?next=%2Fdevice\n") {
		t.Errorf("%s", mail.Text)
	}
	w.refuse("sign_up")
	w.must(signUp(NewAccount{Email: "ann@example.com", Password: next}))
	w.silence("beyond the limit")
	if now := w.stored(owner); now.PasswordHash != owner.PasswordHash {
		t.Error("signing up changed an existing account")
	}
	w.settings(func(s *identity.Settings) { s.SignUp = identity.SignUpClosed })
	w.wantErr("closed", signUp(NewAccount{Email: "more@example.com", Password: plain}), ErrSignUpClosed)
	w.wantEvents(map[eventlog.Type]int{eventlog.UserCreated: 1, eventlog.UserSignedUp: 1})
	if methods := w.Identify(t.Context(), tenantA, "ann@example.com"); !slices.Equal(methods, w.Identify(t.Context(), tenantA, "unknown@example.com")) {
		t.Errorf("%v", methods)
	}
}

// Attempts at the current password count like those of sign-ins, also with an expired limit.
func TestFailuresAreForgotten(t *testing.T) {
	w := open(t)
	w.user("ann@example.com")
	for range freeFailures {
		_, err := w.SignIn(t.Context(), tenantA, "ann@example.com", "wrong", Device{})
		w.wantErr("a free failure", err, ErrCredentials)
	}
	w.advance(forgetAfter + time.Second)
	for range freeFailures {
		_, err := w.SignIn(t.Context(), tenantA, "ann@example.com", "wrong", Device{})
		w.wantErr("a day later", err, ErrCredentials)
	}
}
