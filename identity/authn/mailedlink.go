package authn

import (
	"context"
	"errors"
	"time"

	"stonetown/identity"
	"stonetown/identity/onetime"
)

// Link is what a mailed link is for.
type Link struct {
	Purpose   Purpose
	Email     string // that it is about
	ExpiresAt time.Time
}

// Purpose is what following a link does.
type Purpose string

// The purposes of mailed links.
const (
	VerifyAddress Purpose = "verify_email"
	ChangeAddress Purpose = "change_email"
	RevertAddress Purpose = "revert_email"
	NewPassword   Purpose = "reset_password"
)

// purposes are those of the tickets in links.
var purposes = map[onetime.Kind]Purpose{kindVerify: VerifyAddress, kindChange: ChangeAddress, kindRevert: RevertAddress, kindReset: NewPassword}

// ReadLink says what the link with a token is for, without doing it: programs open the links in
// letters before people do. It fails with [ErrToken] for a link that is dead.
func (s *Service) ReadLink(ctx context.Context, t Tenant, token string) (Link, error) {
	for kind, purpose := range purposes {
		handed, err := s.tokens.Find(ctx, t.ID, kind, token)
		if errors.Is(err, onetime.ErrInvalid) {
			continue
		}
		var about addressed
		if err == nil {
			err = handed.Read(&about)
		}
		if err != nil {
			return Link{}, err
		}
		u, err := s.users.User(ctx, t.ID, handed.UserID)
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
		return Link{purpose, about.Email, handed.ExpiresAt}, nil
	}
	return Link{}, ErrToken
}
