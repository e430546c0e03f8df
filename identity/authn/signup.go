package authn

import (
	"context"
	"errors"
	"net/url"

	"stonetown/identity"
	"stonetown/identity/mails"
	"stonetown/identity/password"
	"stonetown/internal/eventlog"
	"stonetown/internal/jobs"
	"stonetown/internal/sqldb"
)

// NewAccount is a request to sign up.
type NewAccount struct {
	Email    string
	Password string
	Profile  identity.Profile
	Next     string // the path that the mailed link leads to in the end; empty: none
	Device   Device
}

// SignUp queues the creation of an account. The job looks the address up, so that the response
// does not reveal whether it has an account; the owner of an existing one gets a mail. The flow
// of the tenant runs before, for known and unknown addresses alike. SignUp fails with
// [ErrSignUpClosed], [ErrThreat], [identity.ErrEmailInvalid], [*password.PolicyError] or [*flow.DeniedError].
func (s *Service) SignUp(ctx context.Context, t Tenant, n NewAccount) error {
	settings, err := s.users.Settings(ctx, t.ID)
	if err != nil {
		return err
	}
	if settings.SignUp != identity.SignUpOpen {
		return ErrSignUpClosed
	}
	if !identity.ValidEmail(n.Email) {
		return identity.ErrEmailInvalid
	}
	if err := s.screenSignUp(ctx, t, settings, n.Email); err != nil {
		return err
	}
	hash, err := s.users.NewPassword(ctx, t.ID, n.Password, identity.User{Email: n.Email, Profile: n.Profile})
	if err != nil {
		return err
	}
	if err := s.admitSignUp(ctx, t, settings, identity.User{TenantID: t.ID, Email: n.Email, Profile: n.Profile}, "", n.Device); err != nil {
		return err
	}
	// Only the mail about an existing account is limited; that of a new account is always sent.
	var slow *SlowDownError
	err = s.limit(ctx, t.ID, "sign_up", identity.NormalEmail(n.Email), mailLimits...)
	if err != nil && !errors.As(err, &slow) {
		return err
	}
	return s.jobs.Put(ctx, t.ID, jobSignUp, signUpJob{Email: n.Email, Hash: string(hash), Profile: n.Profile, Next: n.Next, Quiet: slow != nil, Origin: eventlog.OriginOf(ctx)})
}

// signUpJob creates an account.
type signUpJob struct {
	Email   string           `json:"email"`
	Hash    string           `json:"hash"`
	Profile identity.Profile `json:"profile"`
	Next    string           `json:"next,omitzero"`
	Quiet   bool             `json:"quiet,omitzero"` // no mail about an existing account
	Origin  eventlog.Origin  `json:"origin"`
}

// createAccount creates an account, or sends a mail to the owner of the existing one.
func (s *Service) createAccount(ctx context.Context, job jobs.Job, n signUpJob) error {
	tenantID := job.TenantID
	err := s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		u, err := s.users.CreateUser(ctx, tx, tenantID, identity.NewUser{Email: n.Email, Profile: n.Profile, PasswordHash: password.Hash(n.Hash)})
		if err != nil {
			return err
		}
		var b sqldb.Batch
		ctx := as(from(ctx, n.Origin), u.ID)
		eventlog.Append(&b, tenantID, identity.UserCreated(ctx, u, identity.FromSignUp), signedUp(ctx, u))
		queueVerification(s.jobs, &b, u, n.Next)
		return tx.Send(ctx, &b)
	})
	if !errors.Is(err, identity.ErrUserExists) {
		s.jobs.Wake()
		return err
	}
	u, err := s.users.UserByEmail(ctx, tenantID, n.Email)
	if errors.Is(err, identity.ErrUserNotFound) {
		return s.createAccount(ctx, job, n) // deleted meanwhile
	}
	if err != nil || n.Quiet {
		return err
	}
	link := "/auth/sign-in"
	if n.Next != "" {
		link += "?next=" + url.QueryEscape(n.Next)
	}
	return s.send(ctx, tenantID, u, "sign_up_again", mails.Data{Link: link})
}
