package token

import (
	"context"
	"errors"

	"stonetown/oauth/access"
	"stonetown/oauth/protocol"
)

// Ancestor is a token that another one was exchanged for, or the token of an actor, by the ids
// of everything that can end it. A token names its ancestors (claim anc), the latest first,
// and each one is checked at verification. So the revocation of one ends every descendant,
// however long the chain.
type Ancestor struct {
	TokenID   string `json:"jti,omitempty"`
	ClientID  string `json:"cid,omitempty"`
	SessionID string `json:"sid,omitempty"`
	GrantID   string `json:"gid,omitempty"`
	Subject   string `json:"sub,omitempty"`
}

// MaxAncestors bounds the claim: a token of 16 exchanges has 16 ancestors, or more if actors
// took part.
const MaxAncestors = 16

// checkAncestors refuses a token of which an ancestor has ended.
func (s *Service) checkAncestors(ctx context.Context, tenant protocol.Tenant, ancestors []Ancestor) error {
	for _, a := range ancestors {
		if a.GrantID != "" {
			if err := s.checkGrant(ctx, tenant, a.GrantID, a.SessionID, a.Subject); err != nil {
				return err
			}
		}
		if a.SessionID != "" {
			if err := s.checkSession(ctx, tenant, a.SessionID); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkGrant refuses a token whose grant was revoked or, if the grant does not end with a
// session, whose user was signed out of everything since.
func (s *Service) checkGrant(ctx context.Context, tenant protocol.Tenant, grantID, sessionID, userID string) error {
	g, err := s.access.Grant(ctx, tenant, grantID)
	if errors.Is(err, access.ErrInvalidGrant) || err == nil && !g.RevokedAt.IsZero() {
		return &Error{Revoked}
	}
	if err != nil || sessionID != "" {
		return err
	}
	from, err := s.users.ValidFrom(ctx, tenant.ID, userID)
	if errors.Is(err, access.ErrUserGone) || err == nil && g.CreatedAt.Before(from) {
		return &Error{Revoked}
	}
	return err
}

// checkSession refuses a token whose session has ended.
func (s *Service) checkSession(ctx context.Context, tenant protocol.Tenant, sessionID string) error {
	live, err := s.users.SessionLive(ctx, tenant.ID, sessionID)
	if err == nil && !live {
		err = &Error{Revoked}
	}
	return err
}
