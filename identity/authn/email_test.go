package authn

import (
	"strings"
	"testing"
	"time"

	"stonetown/identity"
	"stonetown/identity/external"
	"stonetown/internal/eventlog"
)

func TestVerifyEmail(t *testing.T) {
	w := open(t)
	u, err := w.users.Create(t.Context(), tenantA.ID, identity.NewUser{Email: "ann@example.com", PasswordHash: plainHash()})
	w.must(err)
	token := w.link("ann@example.com", "Confirm your e-mail address")
	link, err := w.ReadLink(t.Context(), tenantA, token)
	if err != nil || link.Purpose != VerifyAddress || link.Email != "ann@example.com" {
		t.Errorf("%+v, %v", link, err)
	}
	after, err := w.ResendVerification(t.Context(), tenantA, u.ID)
	if err != nil || after != time.Minute {
		t.Errorf("%v, %v", after, err)
	}
	again := w.link("ann@example.com", "Confirm your e-mail address")
	w.must(w.ResendTo(t.Context(), tenantA, "ANN@example.com", "/device"))
	if mail := w.mail("ann@example.com", "Confirm your e-mail address"); !strings.Contains(mail.Text, "&next=%2Fdevice\n") {
		t.Errorf("%s", mail.Text)
	}
	w.must(w.ResendTo(t.Context(), tenantA, "unknown@example.com", ""))
	w.refuse("verify")
	w.must(w.ResendTo(t.Context(), tenantA, "ann@example.com", ""))
	_, err = w.ResendVerification(t.Context(), tenantA, u.ID)
	w.slowDown("too many mails", err)
	w.silence("an unknown address, beyond the limit")
	w.refuse("")

	_, err = w.VerifyEmail(t.Context(), tenantA, "unknown")
	w.wantErr("an unknown token", err, ErrToken)
	for range 2 { // mail scanners use it first
		email, err := w.VerifyEmail(t.Context(), tenantA, token)
		if err != nil || email != "ann@example.com" {
			t.Errorf("%s, %v", email, err)
		}
	}
	if now := w.stored(u); !now.EmailVerified || now.State != identity.Active {
		t.Errorf("%+v", now)
	}
	_, err = w.ResendVerification(t.Context(), tenantA, u.ID)
	w.wantErr("a verified address", err, ErrVerified)
	w.must(w.ResendTo(t.Context(), tenantA, "ann@example.com", ""))
	w.silence("a verified address")
	w.wantEvents(map[eventlog.Type]int{eventlog.UserEmailVerified: 1, eventlog.UserActivated: 1})

	// A link is about the address that it was mailed to.
	w.change(u, func(u *identity.User) { u.Email = "other@example.com" })
	_, err = w.VerifyEmail(t.Context(), tenantA, again)
	w.wantErr("another address", err, ErrToken)
	_, err = w.ReadLink(t.Context(), tenantA, again)
	w.wantErr("the link of another address", err, ErrToken)
}

func TestChangeEmail(t *testing.T) {
	w := open(t)
	u := w.user("ann@example.com")
	w.user("bob@example.com")
	current := w.sessionOf(u)
	change := func(email string) (EmailChange, error) {
		return w.ChangeEmail(t.Context(), tenantA, current, email)
	}
	_, err := change("x")
	w.wantErr("an invalid address", err, identity.ErrEmailInvalid)
	w.refuse("change")
	_, err = change("new@example.com")
	w.slowDown("too many changes", err)
	w.refuse("")

	// The response does not reveal that an address has an account, but its owner is notified.
	_, err = change("bob@example.com")
	w.must(err)
	w.mail("bob@example.com", "was entered for another")
	w.silence("an address that has an account")

	c, err := change("new@example.com")
	w.must(err)
	token := w.link("new@example.com", "Confirm your new e-mail address")
	w.mail("ann@example.com", "is about to change")
	if link, err := w.ReadLink(t.Context(), tenantA, token); err != nil || link.Purpose != ChangeAddress || link.Email != "new@example.com" {
		t.Errorf("%+v, %v", link, err)
	}
	if found, err := w.EmailChange(t.Context(), tenantA.ID, u.ID, c.ID); err != nil || found.Verified {
		t.Errorf("%+v, %v", found, err)
	}
	_, err = w.EmailChange(t.Context(), tenantA.ID, "usr_other", c.ID)
	w.wantErr("the change of another user", err, ErrChangeNotFound)
	for range 2 {
		if email, err := w.VerifyEmail(t.Context(), tenantA, token); err != nil || email != "new@example.com" {
			t.Errorf("%s, %v", email, err)
		}
	}
	if found, err := w.EmailChange(t.Context(), tenantA.ID, u.ID, c.ID); err != nil || !found.Verified {
		t.Errorf("%+v, %v", found, err)
	}
	w.wantErr("canceling a completed change", w.CancelEmailChange(t.Context(), tenantA.ID, u.ID, c.ID), ErrChangeNotFound)
	if now := w.stored(u); now.Email != "new@example.com" || !now.EmailVerified {
		t.Errorf("%+v", now)
	}
	w.wantEvents(map[eventlog.Type]int{eventlog.UserEmailChangeRequested: 2, eventlog.UserEmailChanged: 1})

	// A canceled, an expired and an overtaken change.
	c, err = change("third@example.com")
	w.must(err)
	token = w.link("third@example.com", "Confirm your new")
	w.must(w.CancelEmailChange(t.Context(), tenantA.ID, u.ID, c.ID))
	_, err = w.VerifyEmail(t.Context(), tenantA, token)
	w.wantErr("a canceled change", err, ErrToken)
	_, err = w.ReadLink(t.Context(), tenantA, token)
	w.wantErr("the link of a canceled change", err, ErrToken)
	_, err = change("fourth@example.com")
	w.must(err)
	token = w.link("fourth@example.com", "Confirm your new")
	w.user("fourth@example.com")
	_, err = w.VerifyEmail(t.Context(), tenantA, token)
	w.wantErr("an address that has become that of another account", err, ErrToken)
	c, err = change("fifth@example.com")
	w.must(err)
	token = w.link("fifth@example.com", "Confirm your new")
	w.advance(verifyFor)
	_, err = w.VerifyEmail(t.Context(), tenantA, token)
	w.wantErr("an expired change", err, ErrToken)
	_, err = w.EmailChange(t.Context(), tenantA.ID, u.ID, c.ID)
	w.wantErr("an expired change", err, ErrChangeNotFound)
}

// The old address takes the account back from an attacker.
func TestRevertEmail(t *testing.T) {
	w := open(t)
	u := w.user("ann@example.com")
	owners := w.addTOTP(u)
	w.advance(time.Hour)
	attacker := w.sessionOf(u)
	_, err := w.ChangeEmail(t.Context(), tenantA, attacker, "attacker@example.com")
	w.must(err)
	revert := w.link("ann@example.com", "is about to change")
	complete := w.link("attacker@example.com", "Confirm your new")
	_, err = w.VerifyEmail(t.Context(), tenantA, complete)
	w.must(err)
	w.advance(time.Second)
	w.addTOTP(w.stored(u))
	_, err = w.NewBackupCodes(t.Context(), tenantA.ID, u.ID)
	w.must(err)
	w.must(w.Link(t.Context(), external.Identity{TenantID: tenantA.ID, UserID: u.ID, ConnectionID: "con_a", Slug: "a", Kind: "oidc", Subject: "attacker"}))
	w.mail("attacker@example.com", "was linked")
	w.must(w.ChangePassword(t.Context(), tenantA, attacker, plain, next))
	w.mail("attacker@example.com", "password was changed")

	if link, err := w.ReadLink(t.Context(), tenantA, revert); err != nil || link.Purpose != RevertAddress || link.Email != "ann@example.com" {
		t.Errorf("%+v, %v", link, err)
	}
	_, err = w.RevertEmail(t.Context(), tenantA, "unknown")
	w.wantErr("an unknown token", err, ErrToken)
	email, err := w.RevertEmail(t.Context(), tenantA, revert)
	if err != nil || email != "ann@example.com" {
		t.Fatalf("%s, %v", email, err)
	}
	if now := w.stored(u); now.Email != "ann@example.com" || now.PasswordHash != "" {
		t.Errorf("%+v", now)
	}
	if w.live(attacker) {
		t.Error("the session of the attacker has not ended")
	}
	factors, err := w.Factors(t.Context(), tenantA.ID, u.ID)
	if err != nil || len(factors) != 1 || factors[0].ID != owners.id {
		t.Errorf("%+v, %v", factors, err)
	}
	if n, err := w.BackupCodesLeft(t.Context(), tenantA.ID, u.ID); n != 0 || err != nil {
		t.Errorf("%d backup codes, %v", n, err)
	}
	if identities, err := w.Identities(t.Context(), tenantA.ID, u.ID); len(identities) != 0 || err != nil {
		t.Errorf("%+v, %v", identities, err)
	}
	_, err = w.VerifyEmail(t.Context(), tenantA, complete)
	w.wantErr("the link to the new address", err, ErrToken)
	_, err = w.RevertEmail(t.Context(), tenantA, revert)
	w.wantErr("the token again", err, ErrToken)
	r, err := w.ResetPassword(t.Context(), tenantA, w.link("ann@example.com", "Choose a new password"), plain, device("test"))
	if err != nil || r.Status != MFARequired {
		t.Errorf("%s, %v", r.Status, err)
	}
	w.wantEvents(map[eventlog.Type]int{eventlog.UserEmailChanged: 2, eventlog.UserMFARemoved: 1, eventlog.UserIdentityUnlinked: 1})
}

// A revert is no longer possible if the old address has another account.
func TestRevertToTakenAddress(t *testing.T) {
	w := open(t)
	u := w.user("ann@example.com")
	_, err := w.ChangeEmail(t.Context(), tenantA, w.sessionOf(u), "new@example.com")
	w.must(err)
	revert := w.link("ann@example.com", "is about to change")
	_, err = w.VerifyEmail(t.Context(), tenantA, w.link("new@example.com", "Confirm your new"))
	w.must(err)
	w.user("ann@example.com")
	_, err = w.RevertEmail(t.Context(), tenantA, revert)
	w.wantErr("a taken address", err, ErrToken)
	if now := w.stored(u); now.PasswordHash != u.PasswordHash {
		t.Error("a refused revert changed the account")
	}
}
