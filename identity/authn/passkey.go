package authn

import (
	"context"
	"errors"
	"time"

	"stonetown/identity"
	"stonetown/identity/factor"
	"stonetown/identity/onetime"
	"stonetown/internal/sqldb"
)

const kindPasskey onetime.Kind = "passkey"

// passkeyCeremony is the data of a sign-in with a passkey in progress.
type passkeyCeremony struct {
	Ceremony factor.Ceremony `json:"ceremony"`
}

// PasskeyRequest contains what a browser needs to request a passkey.
type PasskeyRequest struct {
	ID        string
	Options   any  // PublicKeyCredentialRequestOptionsJSON
	Autofill  bool // the browser may offer passkeys in the field of the address (conditional mediation)
	ExpiresAt time.Time
}

// BeginPasskey begins a sign-in with a passkey of the user with an address, or with any
// discoverable passkey if the address is empty. The result does not reveal whether the address
// has an account.
func (s *Service) BeginPasskey(ctx context.Context, t Tenant, email string) (r PasskeyRequest, err error) {
	var ceremony *factor.Ceremony
	var userID string
	if email == "" {
		r.Autofill = true
		r.Options, ceremony, err = s.factors.BeginAssertion(party(t), factor.Person{TenantID: t.ID}, nil, true)
	} else {
		r.Options, ceremony, userID, err = s.beginPasskeyOf(ctx, t, email)
	}
	if err != nil {
		return r, err
	}
	secret, token, err := s.tokens.Create(ctx, onetime.New{
		Kind: kindPasskey, TenantID: t.ID, UserID: userID, Payload: passkeyCeremony{*ceremony}, For: ceremonyFor,
	})
	r.ID, r.ExpiresAt = secret, token.ExpiresAt
	return r, err
}

func (s *Service) beginPasskeyOf(ctx context.Context, t Tenant, email string) (options any, c *factor.Ceremony, userID string, err error) {
	u, err := s.users.UserByEmail(ctx, t.ID, email)
	if err != nil && !errors.Is(err, identity.ErrUserNotFound) {
		return nil, nil, "", err
	}
	factors, err := s.factors.List(ctx, t.ID, u.ID) // none for the zero user
	if err != nil {
		return nil, nil, "", err
	}
	for _, f := range factors {
		if f.Kind == factor.WebAuthn {
			options, c, err := s.factors.BeginAssertion(party(t), factor.Person{TenantID: t.ID, UserID: u.ID}, factors, true)
			return options, c, u.ID, err
		}
	}
	options, c, err = s.factors.BeginDecoy(party(t), t.ID, identity.NormalEmail(email))
	return options, c, "", err
}

// CompletePasskey signs in the owner of a passkey, which counts as two factors. It fails with
// [ErrToken], [*WrongError] or [ErrDisabled].
func (s *Service) CompletePasskey(ctx context.Context, t Tenant, ceremonyID string, credential []byte, d Device) (Result, error) {
	u, p, err := s.verifyPasskey(ctx, t, ceremonyID, credential)
	if err != nil {
		return Result{}, err
	}
	return s.proceed(ctx, t, u, p, d)
}

// verifyPasskey returns the owner of a passkey, and the proof that it is. It fails as
// [Service.CompletePasskey] does.
func (s *Service) verifyPasskey(ctx context.Context, t Tenant, ceremonyID string, credential []byte) (u identity.User, p proof, err error) {
	token, err := s.tokens.Find(ctx, t.ID, kindPasskey, ceremonyID)
	if err != nil {
		return u, p, invalid(err)
	}
	var begun passkeyCeremony
	if err := token.Read(&begun); err != nil {
		return u, p, err
	}
	f, err := s.factors.Owner(ctx, t.ID, token.UserID, credential)
	if err == nil {
		err = s.db.Tx(ctx, func(tx *sqldb.Tx) error {
			if err := onetime.Use(ctx, tx, token); err != nil {
				return invalid(err)
			}
			_, err := s.factors.VerifyAssertion(ctx, tx, party(t), f, begun.Ceremony, credential)
			return err
		})
	}
	if errors.Is(err, factor.ErrWrong) || errors.Is(err, factor.ErrNotFound) {
		return u, p, &WrongError{Kind: factor.WebAuthn}
	}
	if err != nil {
		return u, p, err
	}
	u, err = s.users.User(ctx, t.ID, f.UserID)
	if errors.Is(err, identity.ErrUserNotFound) {
		return u, p, &WrongError{Kind: factor.WebAuthn}
	}
	if err != nil {
		return u, p, err
	}
	return u, proof{Methods: []string{factor.WebAuthn.Method(), "user"}, Second: true}, nil
}
