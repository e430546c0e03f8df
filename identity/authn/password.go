package authn

import (
	"context"
	"errors"
	"slices"
	"time"

	"stonetown/identity"
	"stonetown/identity/onetime"
	"stonetown/identity/password"
	"stonetown/identity/session"
	"stonetown/internal/eventlog"
	"stonetown/internal/fair"
	"stonetown/internal/ratelimit"
	"stonetown/internal/sqldb"
)

const (
	kindReset onetime.Kind = "reset" // a new password, after a mailed link or because the old one must be replaced
	resetFor               = time.Hour
)

// mailLimits bound the mails of one kind to one address.
var mailLimits = []ratelimit.Limit{{Requests: 1, Window: time.Minute}, {Requests: 5, Window: time.Hour}}

// ChangePassword replaces the password of the user of a session and ends the other sessions. It
// fails with [ErrNoPassword], [ErrPassword], [*password.PolicyError] or
// [*SlowDownError].
func (s *Service) ChangePassword(ctx context.Context, t Tenant, current session.Session, present, next string) error {
	u, err := s.users.User(ctx, t.ID, current.UserID)
	if err != nil {
		return err
	}
	if u.PasswordHash == "" {
		return ErrNoPassword
	}
	account := identity.NormalEmail(u.Email) // attempts count like those of sign-ins
	var ok bool
	err = password.Reserve(ctx, func(ctx context.Context) error {
		_, err := s.attempt(ctx, t.ID, account)
		if err == nil {
			ok, err = u.PasswordHash.Verify(ctx, present)
		}
		return err
	})
	if err != nil {
		return err
	}
	if !ok {
		return ErrPassword
	}
	hash, err := s.users.NewPassword(ctx, t.ID, next, u)
	if _, busy := errors.AsType[*fair.ExhaustedError](err); busy {
		var b sqldb.Batch
		s.forgive(&b, t.ID, account) // the current password was correct
		return errors.Join(err, s.db.Tx(ctx, func(tx *sqldb.Tx) error { return tx.Send(ctx, &b) }))
	}
	if err != nil {
		return s.RecordRefusal(ctx, t.ID, u, err)
	}
	err = s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		c, err := s.users.UpdateIn(ctx, tx, t.ID, u.ID, setPassword(hash))
		if err == nil && c.Before.PasswordHash != u.PasswordHash {
			err = ErrPassword // the password was replaced meanwhile
		}
		if err != nil {
			return err
		}
		ended, err := s.users.SignOut(ctx, tx, t.ID, u.ID, current.ID)
		if err != nil {
			return err
		}
		var b sqldb.Batch
		s.forgive(&b, t.ID, account)
		eventlog.Append(&b, t.ID, append([]eventlog.Event{identity.UserPasswordChanged(ctx, c.After)}, revoked(ctx, ended, session.EndedByPassword)...)...)
		s.notify(&b, t.ID, u.ID, passwordChanged)
		return tx.Send(ctx, &b)
	})
	if err == nil {
		s.jobs.Wake()
	}
	return err
}

func setPassword(hash password.Hash) func(*identity.User) {
	return func(u *identity.User) {
		u.SetPassword(hash)
		u.PasswordMustBeReset = false
	}
}

// Forgot sends a link to a new password to an address, if it has an account. A job looks the
// address up, so that neither the result nor its timing reveals whether it has one. Unless it is
// empty, the path next is part of the link.
func (s *Service) Forgot(ctx context.Context, t Tenant, email, next string) error {
	var slow *SlowDownError
	if err := s.limit(ctx, t.ID, "reset", identity.NormalEmail(email), mailLimits...); errors.As(err, &slow) {
		return nil // the address has got a mail already
	} else if err != nil {
		return err
	}
	return s.jobs.Put(ctx, t.ID, jobResetMail, resetMail{Email: email, Next: next, Origin: eventlog.OriginOf(ctx)})
}

// SendReset sends the same link to a user, on behalf of an administrator. It fails with
// [identity.ErrUserNotFound] or [identity.ErrManaged].
func (s *Service) SendReset(ctx context.Context, tenantID, userID string) error {
	u, err := s.users.User(ctx, tenantID, userID)
	if err == nil && u.ManagedBy != "" {
		err = identity.ErrManaged
	}
	if err != nil {
		return err
	}
	err = s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		var b sqldb.Batch
		eventlog.Append(&b, tenantID, passwordResetRequested(ctx, u))
		s.jobs.Enqueue(&b, tenantID, jobResetMail, resetMail{UserID: userID})
		return tx.Send(ctx, &b)
	})
	if err == nil {
		s.jobs.Wake()
	}
	return err
}

// ResetPassword sets a new password, with the token of a mailed link or of a sign-in whose
// password must be replaced, and continues the sign-in. A mailed link verifies the address as
// well. All sessions end. ResetPassword fails with [ErrToken] or [*password.PolicyError].
func (s *Service) ResetPassword(ctx context.Context, t Tenant, token, password string, d Device) (Result, error) {
	found, err := s.tokens.Find(ctx, t.ID, kindReset, token)
	if err != nil {
		return Result{}, invalid(err)
	}
	var p proof
	if err := found.Read(&p); err != nil {
		return Result{}, err
	}
	u, err := s.users.User(ctx, t.ID, found.UserID)
	if errors.Is(err, identity.ErrUserNotFound) {
		return Result{}, ErrToken
	}
	if err != nil {
		return Result{}, err
	}
	ctx = as(ctx, u.ID)
	hash, err := s.users.NewPassword(ctx, t.ID, password, u)
	if err != nil {
		return Result{}, s.RecordRefusal(ctx, t.ID, u, err)
	}
	err = s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		if err := onetime.Use(ctx, tx, found); err != nil {
			return invalid(err)
		}
		c, err := s.users.UpdateIn(ctx, tx, t.ID, u.ID, func(u *identity.User) {
			setPassword(hash)(u)
			if !p.Forced { // the link was mailed to the address
				u.VerifyEmail(true)
			}
		})
		if err != nil {
			return err
		}
		u = c.After
		ended, err := s.users.SignOut(ctx, tx, t.ID, u.ID, "")
		if err != nil {
			return err
		}
		var b sqldb.Batch
		s.forgive(&b, t.ID, identity.NormalEmail(u.Email))
		events := verified(ctx, c)
		if p.Forced {
			events = append(events, identity.UserPasswordChanged(ctx, u))
		} else {
			events = append(events, passwordResetCompleted(ctx, u))
		}
		eventlog.Append(&b, t.ID, append(events, revoked(ctx, ended, session.EndedByPassword)...)...)
		s.notify(&b, t.ID, u.ID, passwordChanged)
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return Result{}, err
	}
	s.jobs.Wake()
	if !slices.Contains(p.Methods, "pwd") {
		p.Methods = append(p.Methods, "pwd")
	}
	p.Forced = false
	return s.resume(ctx, t, u, p, d)
}
