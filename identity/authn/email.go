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
	"stonetown/internal/jobs"
	"stonetown/internal/sqldb"
)

const (
	kindVerify onetime.Kind = "verify_email"
	kindChange onetime.Kind = "change_email"
	kindRevert              = onetime.RevertEmail

	verifyFor = 24 * time.Hour
	revertFor = 7 * 24 * time.Hour
)

// addressed is the data of a link about an address.
type addressed struct {
	Email  string `json:"email"`
	Change string `json:"change,omitzero"` // the id of a change of address
	// Since is the time of the request for the change, in a link that reverts it.
	Since time.Time `json:"since,omitzero"`
}

// EmailChange is a change of address, which takes effect when the new address is verified.
type EmailChange struct {
	ID       string
	Verified bool
	since    time.Time // the time of the request
}

// VerifyEmail verifies an address with the token of a mailed link: that of a new user, or the
// new one of a change. Using the token again has no effect and is no error, because mail
// scanners open links before users do. VerifyEmail fails with [ErrToken].
func (s *Service) VerifyEmail(ctx context.Context, t Tenant, token string) (email string, err error) {
	found, err := s.tokens.Find(ctx, t.ID, kindVerify, token)
	if errors.Is(err, onetime.ErrInvalid) {
		return s.completeChange(ctx, t, token)
	}
	var link addressed
	if err == nil {
		err = found.Read(&link)
	}
	if err != nil {
		return "", err
	}
	ctx = as(ctx, found.UserID)
	err = s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		c, err := s.users.UpdateIn(ctx, tx, t.ID, found.UserID, func(u *identity.User) {
			if u.Email == link.Email {
				u.VerifyEmail(true)
			}
		})
		if errors.Is(err, identity.ErrUserNotFound) || err == nil && c.After.Email != link.Email {
			return ErrToken
		}
		if err != nil {
			return err
		}
		var b sqldb.Batch
		eventlog.Append(&b, t.ID, verified(ctx, c)...)
		return tx.Send(ctx, &b)
	})
	return link.Email, err
}

// ResendVerification sends another mail with the link that verifies the address of a user, and
// returns the time until the next may be sent. It fails with [ErrVerified] or [*SlowDownError].
func (s *Service) ResendVerification(ctx context.Context, t Tenant, userID string) (time.Duration, error) {
	u, err := s.users.User(ctx, t.ID, userID)
	if err != nil {
		return 0, err
	}
	if u.EmailVerified {
		return 0, ErrVerified
	}
	if err := s.limit(ctx, t.ID, "verify", identity.NormalEmail(u.Email), mailLimits...); err != nil {
		return 0, err
	}
	return mailLimits[0].Window, s.jobs.Put(ctx, t.ID, jobVerifyMail, verifyMail{UserID: userID})
}

// ResendTo sends the same mail to an address, if it is the unverified address of a user. The
// result does not reveal whether it is. Unless it is empty, the path next is part of the link.
func (s *Service) ResendTo(ctx context.Context, t Tenant, email, next string) error {
	var slow *SlowDownError
	if err := s.limit(ctx, t.ID, "verify", identity.NormalEmail(email), mailLimits...); errors.As(err, &slow) {
		return nil
	} else if err != nil {
		return err
	}
	return s.jobs.Put(ctx, t.ID, jobVerifyMail, verifyMail{Email: email, Next: next})
}

// Verification is an [identity.Verification] that enqueues the mails. The service
// with the same queue sends them.
type Verification struct{ Jobs *jobs.Queue }

// Queue implements [identity.Verification].
func (v Verification) Queue(b *sqldb.Batch, u identity.User) { queueVerification(v.Jobs, b, u, "") }

// Wake implements [identity.Verification].
func (v Verification) Wake() { v.Jobs.Wake() }

// queueVerification queues the mail. Unless it is empty, the path next is part of the link.
func queueVerification(o *jobs.Queue, b *sqldb.Batch, u identity.User, next string) {
	o.Enqueue(b, u.TenantID, jobVerifyMail, verifyMail{UserID: u.ID, Next: next})
}

// ChangeEmail begins a change of address. The new address gets the link that completes it, and
// the old address a link that reverts it. The result does not reveal whether the new address
// has an account. ChangeEmail fails with [identity.ErrEmailInvalid] or [*SlowDownError].
func (s *Service) ChangeEmail(ctx context.Context, t Tenant, current session.Session, email string) (c EmailChange, err error) {
	if !identity.ValidEmail(email) {
		return c, identity.ErrEmailInvalid
	}
	u, err := s.users.User(ctx, t.ID, current.UserID)
	if err != nil {
		return c, err
	}
	if err := s.limit(ctx, t.ID, "change", u.ID, mailLimits[1]); err != nil {
		return c, err
	}
	now := s.now()
	c.ID = id.New(id.EmailChange)
	err = s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		var b sqldb.Batch
		b.Queue(`INSERT INTO email_changes (tenant_id, user_id, id, new_email, verified, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
			[]any{t.ID, u.ID, c.ID, email, false, now.UnixMicro(), now.Add(verifyFor).UnixMicro()}, nil)
		eventlog.Append(&b, t.ID, emailChangeRequested(ctx, u))
		s.jobs.Enqueue(&b, t.ID, jobChangeMail, changeMail{UserID: u.ID, Change: c.ID, Email: email})
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return c, fmt.Errorf("begin change of address: %w", err)
	}
	s.jobs.Wake()
	return c, nil
}

// EmailChange returns a change of address. It fails with [ErrChangeNotFound].
func (s *Service) EmailChange(ctx context.Context, tenantID, userID, changeID string) (EmailChange, error) {
	c, _, err := s.selectChange(ctx, s.db, tenantID, userID, changeID)
	return c, err
}

// CancelEmailChange cancels a change of address. It fails with [ErrChangeNotFound], also if the
// change is completed.
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

// completeChange changes the address of a user to that of the token. It fails with [ErrToken],
// also if another account has the address by now.
func (s *Service) completeChange(ctx context.Context, t Tenant, token string) (email string, err error) {
	found, err := s.tokens.Find(ctx, t.ID, kindChange, token)
	var link addressed
	if err == nil {
		err = found.Read(&link)
	}
	if err != nil {
		return "", invalid(err)
	}
	ctx = as(ctx, found.UserID)
	err = s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		change, to, err := s.selectChange(ctx, tx, t.ID, found.UserID, link.Change)
		if errors.Is(err, ErrChangeNotFound) {
			return ErrToken
		}
		if err != nil || change.Verified {
			return err
		}
		c, err := s.users.UpdateIn(ctx, tx, t.ID, found.UserID, func(u *identity.User) {
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
		b.Queue(`UPDATE email_changes SET verified = $4 WHERE tenant_id = $1 AND user_id = $2 AND id = $3`, []any{t.ID, found.UserID, link.Change, true}, nil)
		// Links that were mailed to the old address become invalid.
		onetime.Discard(&b, t.ID, found.UserID, kindReset, kindVerify)
		events := verified(ctx, c)
		eventlog.Append(&b, t.ID, append(events, emailChanged(ctx, c))...)
		return tx.Send(ctx, &b)
	})
	return link.Email, err
}

// RevertEmail reverts a change of address with the token that the old address got, and returns
// the account to its owner, who may have lost every other credential. All sessions end. The
// password, which an attacker may have chosen, is removed, and a link to a new one is mailed.
// The credentials that were added since the change was requested are removed: second factors,
// external identities and, because their age is unknown, all backup codes. Other changes of
// address are canceled. RevertEmail fails with [ErrToken].
func (s *Service) RevertEmail(ctx context.Context, t Tenant, token string) (email string, err error) {
	found, err := s.tokens.Find(ctx, t.ID, kindRevert, token)
	var link addressed
	if err == nil {
		err = found.Read(&link)
	}
	if err != nil {
		return "", invalid(err)
	}
	ctx = as(ctx, found.UserID)
	err = s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		if err := onetime.Use(ctx, tx, found); err != nil {
			return invalid(err)
		}
		c, err := s.users.UpdateIn(ctx, tx, t.ID, found.UserID, func(u *identity.User) {
			u.Email = link.Email
			u.SetPassword("")
		})
		if errors.Is(err, identity.ErrUserExists) || errors.Is(err, identity.ErrUserNotFound) {
			return ErrToken
		}
		if err != nil {
			return err
		}
		ended, err := s.users.SignOut(ctx, tx, t.ID, found.UserID, "")
		if err != nil {
			return err
		}
		var b sqldb.Batch
		b.Queue(`DELETE FROM email_changes WHERE tenant_id = $1 AND user_id = $2`, []any{t.ID, found.UserID}, nil)
		onetime.Discard(&b, t.ID, found.UserID, kindRevert)
		events, err := s.removeSince(ctx, tx, c.After, link.Since)
		if err != nil {
			return err
		}
		events = append(events, revoked(ctx, ended, session.EndedByUser)...)
		if c.Before.Email != c.After.Email {
			events = append(events, emailChanged(ctx, c))
		}
		eventlog.Append(&b, t.ID, events...)
		s.jobs.Enqueue(&b, t.ID, jobResetMail, resetMail{UserID: found.UserID})
		return tx.Send(ctx, &b)
	})
	if err == nil {
		s.jobs.Wake()
	}
	return link.Email, err
}

// removeSince removes the credentials that a user added at or after an instant.
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
