package authn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"stonetown/identity"
	"stonetown/identity/external"
	"stonetown/identity/factor"
	"stonetown/identity/onetime"
	"stonetown/identity/session"
	"stonetown/internal/eventlog"
	"stonetown/internal/id"
	"stonetown/internal/outbox"
	"stonetown/internal/sqldb"
)

const (
	kindVerify onetime.Kind = "verify_email"
	kindChange onetime.Kind = "change_email"
	kindRevert              = onetime.RevertEmail

	verifyFor = 24 * time.Hour
	revertFor = 7 * 24 * time.Hour
)

// addressed is what is remembered of a letter: the address that it is about.
type addressed struct {
	Email  string `json:"email"`
	Change string `json:"change,omitzero"` // the id of a change of address
	// Since is when the change was requested, of a letter that takes it back.
	Since time.Time `json:"since,omitzero"`
}

// EmailChange is a change of address that waits for the new one to be verified, or has
// been.
type EmailChange struct {
	ID       string
	Verified bool
	since    time.Time // when it was requested
}

// VerifyEmail verifies an address with the token of a letter: a new user's, or that of a
// change. A token can be used again, to no effect, since programs that open the links in
// letters may use that of a change, too. It fails with [ErrToken].
func (s *Service) VerifyEmail(ctx context.Context, t Tenant, token string) (email string, err error) {
	handed, err := s.tokens.Find(ctx, t.ID, kindVerify, token)
	if errors.Is(err, onetime.ErrInvalid) {
		return s.completeChange(ctx, t, token)
	}
	var about addressed
	if err == nil {
		err = handed.Read(&about)
	}
	if err != nil {
		return "", err
	}
	ctx = as(ctx, handed.UserID)
	err = s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		c, err := s.users.UpdateIn(ctx, tx, t.ID, handed.UserID, func(u *identity.User) {
			if u.Email == about.Email {
				u.VerifyEmail(true)
			}
		})
		if errors.Is(err, identity.ErrUserNotFound) || err == nil && c.After.Email != about.Email {
			return ErrToken
		}
		if err != nil {
			return err
		}
		var b sqldb.Batch
		eventlog.Append(&b, t.ID, verified(ctx, c)...)
		return tx.Send(ctx, &b)
	})
	return about.Email, err
}

// ResendVerification has the letter sent again that verifies a user's address. It fails
// with [ErrVerified] or [*SlowDownError]; otherwise it says when the next may be.
func (s *Service) ResendVerification(ctx context.Context, t Tenant, userID string) (time.Duration, error) {
	u, err := s.users.User(ctx, t.ID, userID)
	if err != nil {
		return 0, err
	}
	if u.EmailVerified {
		return 0, ErrVerified
	}
	if err := s.limit(ctx, t.ID, "verify", identity.NormalEmail(u.Email), letters...); err != nil {
		return 0, err
	}
	return letters[0].Window, s.outbox.Put(ctx, t.ID, letterVerify, verifyLetter{UserID: userID})
}

// ResendTo has the same letter sent to an address, if it is that of a user who has not
// verified it. Whether it is, the answer does not tell. The link leads on to the path then,
// unless it is empty.
func (s *Service) ResendTo(ctx context.Context, t Tenant, email, then string) error {
	var slow *SlowDownError
	if err := s.limit(ctx, t.ID, "verify", identity.NormalEmail(email), letters...); errors.As(err, &slow) {
		return nil
	} else if err != nil {
		return err
	}
	return s.outbox.Put(ctx, t.ID, letterVerify, verifyLetter{Email: email, Then: then})
}

// Verification sends new users the mail by which they verify their address, for
// [identity.Config.Verification]. The service on the same outbox sends it.
type Verification struct{ Outbox *outbox.Outbox }

// Queue implements [identity.Verification].
func (v Verification) Queue(b *sqldb.Batch, u identity.User) { queueVerification(v.Outbox, b, u, "") }

// Wake implements [identity.Verification].
func (v Verification) Wake() { v.Outbox.Wake() }

// queueVerification queues the mail, whose link leads on to the path then, unless it is empty.
func queueVerification(o *outbox.Outbox, b *sqldb.Batch, u identity.User, then string) {
	o.Queue(b, u.TenantID, letterVerify, verifyLetter{UserID: u.ID, Then: then})
}

// ChangeEmail begins to change a user's address: the new one gets a letter that
// completes it, and the old one learns of it. That the new one is somebody else's, the
// answer does not tell. It fails with [identity.ErrEmailInvalid] or [*SlowDownError].
func (s *Service) ChangeEmail(ctx context.Context, t Tenant, current session.Session, email string) (c EmailChange, err error) {
	if !identity.ValidEmail(email) {
		return c, identity.ErrEmailInvalid
	}
	u, err := s.users.User(ctx, t.ID, current.UserID)
	if err != nil {
		return c, err
	}
	if err := s.limit(ctx, t.ID, "change", u.ID, letters[1]); err != nil {
		return c, err
	}
	now := s.now()
	c.ID = id.New(id.EmailChange)
	err = s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		var b sqldb.Batch
		b.Queue(`INSERT INTO email_changes (tenant_id, user_id, id, new_email, verified, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
			[]any{t.ID, u.ID, c.ID, email, false, now.UnixMicro(), now.Add(verifyFor).UnixMicro()}, nil)
		eventlog.Append(&b, t.ID, emailChangeRequested(ctx, u))
		s.outbox.Queue(&b, t.ID, letterChange, changeLetter{UserID: u.ID, Change: c.ID, Email: email})
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return c, fmt.Errorf("begin change of address: %w", err)
	}
	s.outbox.Wake()
	return c, nil
}

// EmailChange reads a change of address. It fails with [ErrChangeNotFound].
func (s *Service) EmailChange(ctx context.Context, tenantID, userID, changeID string) (EmailChange, error) {
	c, _, err := s.selectChange(ctx, s.db, tenantID, userID, changeID)
	return c, err
}

// CancelEmailChange gives a change of address up. It fails with [ErrChangeNotFound], also
// for one that is completed.
func (s *Service) CancelEmailChange(ctx context.Context, tenantID, userID, changeID string) error {
	if !sqldb.IsText(changeID) {
		return ErrChangeNotFound
	}
	n, err := s.db.Exec(ctx, `DELETE FROM email_changes WHERE tenant_id = $1 AND user_id = $2 AND id = $3 AND verified = $4`, tenantID, userID, changeID, false)
	if err == nil && n == 0 {
		err = ErrChangeNotFound
	}
	return err
}

func (s *Service) selectChange(ctx context.Context, from interface {
	QueryRow(ctx context.Context, sql string, args ...any) *sqldb.Row
}, tenantID, userID, changeID string,
) (c EmailChange, email string, err error) {
	if !sqldb.IsText(changeID) {
		return c, "", ErrChangeNotFound
	}
	c.ID = changeID
	var created, expires int64
	err = from.QueryRow(ctx, `SELECT new_email, verified, created_at, expires_at FROM email_changes WHERE tenant_id = $1 AND user_id = $2 AND id = $3`,
		tenantID, userID, changeID).Scan(&email, &c.Verified, &created, &expires)
	if errors.Is(err, sqldb.ErrNoRows) || err == nil && s.now().UnixMicro() >= expires {
		return EmailChange{}, "", ErrChangeNotFound
	}
	c.since = time.UnixMicro(created).UTC()
	return c, email, err
}

// completeChange gives a user the address that a letter went to. It fails with
// [ErrToken], also if the address has become somebody else's.
func (s *Service) completeChange(ctx context.Context, t Tenant, token string) (email string, err error) {
	handed, err := s.tokens.Find(ctx, t.ID, kindChange, token)
	var asked addressed
	if err == nil {
		err = handed.Read(&asked)
	}
	if err != nil {
		return "", invalid(err)
	}
	ctx = as(ctx, handed.UserID)
	err = s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		change, to, err := s.selectChange(ctx, tx, t.ID, handed.UserID, asked.Change)
		if errors.Is(err, ErrChangeNotFound) {
			return ErrToken
		}
		if err != nil || change.Verified {
			return err
		}
		c, err := s.users.UpdateIn(ctx, tx, t.ID, handed.UserID, func(u *identity.User) {
			u.Email = to
			u.VerifyEmail(true)
		})
		if errors.Is(err, identity.ErrUserExists) || errors.Is(err, identity.ErrUserNotFound) {
			return ErrToken
		}
		if err != nil {
			return err
		}
		var b sqldb.Batch
		b.Queue(`UPDATE email_changes SET verified = $4 WHERE tenant_id = $1 AND user_id = $2 AND id = $3`, []any{t.ID, handed.UserID, asked.Change, true}, nil)
		// Letters to the old address lead nowhere from now on.
		onetime.Discard(&b, t.ID, handed.UserID, kindReset, kindVerify)
		events := verified(ctx, c)
		eventlog.Append(&b, t.ID, append(events, emailChanged(ctx, c))...)
		return tx.Send(ctx, &b)
	})
	return asked.Email, err
}

// RevertEmail gives a user the address back that a letter of a change went to, and with it the
// account: that mailbox may be all that the owner still has. All sessions end. The password,
// which somebody else may know or have chosen, is removed, and a letter for a new one is sent.
// What was added to sign in with since the change was requested goes with it: second factors,
// external identities and, as their age is unknown, all backup codes. Links of other changes
// lead nowhere any more. It fails with [ErrToken].
func (s *Service) RevertEmail(ctx context.Context, t Tenant, token string) (email string, err error) {
	handed, err := s.tokens.Find(ctx, t.ID, kindRevert, token)
	var asked addressed
	if err == nil {
		err = handed.Read(&asked)
	}
	if err != nil {
		return "", invalid(err)
	}
	ctx = as(ctx, handed.UserID)
	err = s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		if err := onetime.Use(ctx, tx, handed); err != nil {
			return invalid(err)
		}
		c, err := s.users.UpdateIn(ctx, tx, t.ID, handed.UserID, func(u *identity.User) {
			u.Email = asked.Email
			u.SetPassword("")
		})
		if errors.Is(err, identity.ErrUserExists) || errors.Is(err, identity.ErrUserNotFound) {
			return ErrToken
		}
		if err != nil {
			return err
		}
		ended, err := s.users.SignOut(ctx, tx, t.ID, handed.UserID, "")
		if err != nil {
			return err
		}
		var b sqldb.Batch
		b.Queue(`DELETE FROM email_changes WHERE tenant_id = $1 AND user_id = $2`, []any{t.ID, handed.UserID}, nil)
		onetime.Discard(&b, t.ID, handed.UserID, kindRevert)
		events, err := s.removeSince(ctx, tx, c.After, asked.Since)
		if err != nil {
			return err
		}
		events = append(events, revoked(ctx, ended, session.EndedByUser)...)
		if c.Before.Email != c.After.Email {
			events = append(events, emailChanged(ctx, c))
		}
		eventlog.Append(&b, t.ID, events...)
		s.outbox.Queue(&b, t.ID, letterReset, resetLetter{UserID: handed.UserID})
		return tx.Send(ctx, &b)
	})
	if err == nil {
		s.outbox.Wake()
	}
	return asked.Email, err
}

// removeSince takes from a user what was added to sign in with since an instant.
func (s *Service) removeSince(ctx context.Context, tx *sqldb.Tx, u identity.User, since time.Time) (events []eventlog.Event, err error) {
	factors, err := factor.RemoveSince(ctx, tx, u.TenantID, u.ID, since)
	if err != nil {
		return nil, err
	}
	for _, f := range factors {
		events = append(events, mfaRemoved(ctx, u, f))
	}
	identities, err := external.OfUser(ctx, tx, u.TenantID, u.ID)
	if err != nil {
		return nil, err
	}
	for _, i := range identities {
		if i.LinkedAt.Before(since) {
			continue
		}
		if err := external.Unlink(ctx, tx, u.TenantID, u.ID, i.ConnectionID); err != nil {
			return nil, err
		}
		events = append(events, identityUnlinked(ctx, u, i))
	}
	return events, nil
}
