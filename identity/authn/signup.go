package authn

import (
	"context"
	"errors"
	"net/url"

	"stonetown/identity"
	"stonetown/identity/password"
	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
)

// NewAccount is what somebody says who wants an account.
type NewAccount struct {
	Email    string
	Password string
	Profile  identity.Profile
	Then     string // the path that the link in the letter leads on to; empty: none
}

// SignUp creates an account, later: the answer comes before anybody looks whether the
// address has one already, whose owner then learns of it by a letter. It fails with
// [ErrSignUpClosed], [identity.ErrEmailInvalid] or [*password.PolicyError].
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
	hash, err := s.users.NewPassword(ctx, t.ID, n.Password, identity.User{Email: n.Email, Profile: n.Profile})
	if err != nil {
		return err
	}
	// A new account gets its letter in any case; an address that has one, no more than its share.
	var slow *SlowDownError
	err = s.limit(ctx, t.ID, "sign_up", identity.NormalEmail(n.Email), letters...)
	if err != nil && !errors.As(err, &slow) {
		return err
	}
	return s.outbox.Put(ctx, t.ID, jobSignUp, signUpJob{Email: n.Email, Hash: string(hash), Profile: n.Profile, Then: n.Then, Quiet: slow != nil, Origin: eventlog.OriginOf(ctx)})
}

// signUpJob is what the outbox does to create an account.
type signUpJob struct {
	Email   string           `json:"email"`
	Hash    string           `json:"hash"`
	Profile identity.Profile `json:"profile"`
	Then    string           `json:"then,omitzero"`
	Quiet   bool             `json:"quiet,omitzero"` // the address has had its share of letters
	Origin  eventlog.Origin  `json:"origin"`
}

// signUp creates an account, or sends its owner a letter where the address has one.
func (s *Service) signUp(ctx context.Context, tenantID string, job signUpJob) error {
	err := s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		u, err := s.users.CreateUser(ctx, tx, tenantID, identity.NewUser{Email: job.Email, Profile: job.Profile, PasswordHash: password.Hash(job.Hash)})
		if err != nil {
			return err
		}
		var b sqldb.Batch
		ctx := as(from(ctx, job.Origin), u.ID)
		eventlog.Append(&b, tenantID, identity.UserCreated(ctx, u, identity.FromSignUp), signedUp(ctx, u))
		queueVerification(s.outbox, &b, u, job.Then)
		return tx.Send(ctx, &b)
	})
	if !errors.Is(err, identity.ErrUserExists) {
		s.outbox.Wake()
		return err
	}
	u, err := s.users.UserByEmail(ctx, tenantID, job.Email)
	if errors.Is(err, identity.ErrUserNotFound) {
		return s.signUp(ctx, tenantID, job) // gone meanwhile
	}
	if err != nil || job.Quiet {
		return err
	}
	link := "/auth/sign-in"
	if job.Then != "" {
		link += "?next=" + url.QueryEscape(job.Then)
	}
	return s.send(ctx, tenantID, u, "sign_up_again", letterData{Link: link})
}
