package authn

import (
	"context"
	"errors"
	"time"

	"stonetown/identity"
	"stonetown/identity/onetime"
)

// Link describes a mailed link.
type Link struct {
	Purpose   Purpose
	Email     string // the address that the link is about
	ExpiresAt time.Time
}

// Purpose is the effect of a link.
type Purpose string

// The purposes of mailed links.
const (
	VerifyAddress Purpose = "verify_email"
	ChangeAddress Purpose = "change_email"
	RevertAddress Purpose = "revert_email"
	NewPassword   Purpose = "reset_password"
)

// purposes are the purposes of the kinds of tokens in links.
var purposes = map[onetime.Kind]Purpose{kindVerify: VerifyAddress, kindChange: ChangeAddress, kindRevert: RevertAddress, kindReset: NewPassword}

// ReadLink describes the link with a token and has no other effect: mail scanners open links
// before users do. It fails with [ErrToken] for an invalid link.
func (s *Service) ReadLink(ctx context.Context, t Tenant, token string) (Link, error) {
	for kind, purpose := range purposes {
		found, err := s.tokens.Find(ctx, t.ID, kind, token)
		if errors.Is(err, onetime.ErrInvalid) {
			continue
		}
		var about addressed
		if err == nil {
			err = found.Read(&about)
		}
		if err != nil {
			return Link{}, err
		}
		u, err := s.users.User(ctx, t.ID, found.UserID)
		if errors.Is(err, identity.ErrUserNotFound) {
			return Link{}, ErrToken
		}
		if err != nil {
			return Link{}, err
		}
		switch purpose {
		case NewPassword:
			about.Email = u.Email
		case VerifyAddress:
			if u.Email != about.Email {
				return Link{}, ErrToken
			}
		case ChangeAddress:
			if _, _, err := s.selectChange(ctx, s.db, t.ID, u.ID, about.Change); errors.Is(err, ErrChangeNotFound) {
				return Link{}, ErrToken
			} else if err != nil {
				return Link{}, err
			}
		}
		return Link{purpose, about.Email, found.ExpiresAt}, nil
	}
	return Link{}, ErrToken
}
