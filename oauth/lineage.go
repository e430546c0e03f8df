package oauth

import (
	"context"
	"errors"
	"slices"
)

// Ancestor is a token that another one was exchanged from, or the token of an actor, by
// all that can end it. A token names its ancestors (claim anc), the latest first, so that
// each of them is looked at when it is verified: revoking one ends every descendant,
// however long the chain.
type Ancestor struct {
	TokenID   string `json:"jti,omitempty"`
	ClientID  string `json:"cid,omitempty"`
	SessionID string `json:"sid,omitempty"`
	GrantID   string `json:"gid,omitempty"`
	Subject   string `json:"sub,omitempty"`
}

// maxAncestors bounds the claim: a token of 16 exchanges has 16 of them, or fewer if
// actors took part.
const maxAncestors = 16

// lineage is the ancestors of a token that is exchanged from a subject's, and an actor's
// if there is one.
func lineage(subject presented, actor *presented) []Ancestor {
	// The token itself has session and grant of its subject.
	all := append([]Ancestor{{TokenID: subject.tokenID, ClientID: subject.clientID}}, subject.ancestors...)
	if actor != nil {
		all = append(all, Ancestor{actor.tokenID, actor.clientID, actor.sessionID, actor.grantID, actor.subject.ID})
		all = append(all, actor.ancestors...)
	}
	var distinct []Ancestor
	for _, a := range all {
		if !slices.Contains(distinct, a) {
			distinct = append(distinct, a)
		}
	}
	return distinct
}

// checkAncestors refuses a token of which an ancestor has ended.
func (s *Service) checkAncestors(ctx context.Context, tenant Tenant, ancestors []Ancestor) error {
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

// checkGrant refuses a token whose grant was revoked or, if it does not end with a
// session, whose user was signed out of everything since.
func (s *Service) checkGrant(ctx context.Context, tenant Tenant, grantID, sessionID, userID string) error {
	g, err := selectGrant(ctx, s.db, tenant, grantID)
	if errors.Is(err, invalidGrant) || err == nil && !g.revokedAt.IsZero() {
		return &TokenError{Revoked}
	}
	if err != nil || sessionID != "" {
		return err
	}
	from, err := s.people.ValidFrom(ctx, tenant.ID, userID)
	if errors.Is(err, ErrPersonGone) || err == nil && g.createdAt.Before(from) {
		return &TokenError{Revoked}
	}
	return err
}

// checkSession refuses a token whose session has ended.
func (s *Service) checkSession(ctx context.Context, tenant Tenant, sessionID string) error {
	live, err := s.people.SessionLive(ctx, tenant.ID, sessionID)
	if err == nil && !live {
		err = &TokenError{Revoked}
	}
	return err
}
