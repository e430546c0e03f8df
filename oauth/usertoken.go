package oauth

import (
	"context"
	"slices"
	"time"
)

// FirstParty is the client_id of tokens that users get from the product itself, without
// an application.
const FirstParty = "first-party"

// firstPartyTTL is how long such a token is good; it ends with its session in any case.
const firstPartyTTL = time.Hour

// UserToken is what a token says about its user.
type UserToken struct {
	UserID    string
	SessionID string
	Methods   []string  // amr (RFC 8176)
	AuthTime  time.Time // of the last factor that was proved
	AAL2      bool      // two factors were proved then
}

// Levels of assurance, as values of acr.
const (
	AAL1 = "aal1"
	AAL2 = "aal2"
)

// IssueToUser issues a token for the product's own API to a user who has signed in: for
// their own account, and with the scopes of their groups. It fails with [ErrPersonGone].
func (s *Service) IssueToUser(ctx context.Context, tenant Tenant, t UserToken) (TokenResponse, error) {
	acr := AAL1
	if t.AAL2 {
		acr = AAL2
	}
	person, err := s.people.Person(ctx, tenant.ID, t.UserID)
	if err != nil {
		return TokenResponse{}, err
	}
	carries, err := s.entitled(ctx, tenant, entitling{person: &person, scopes: []string{"me:read", "me:write"}, brings: true})
	if err != nil {
		return TokenResponse{}, err
	}
	slices.Sort(carries.scopes)
	app := Application{ClientID: FirstParty, SigningAlg: ES256, AccessTokenTTL: firstPartyTTL}
	token, err := s.mint(ctx, tenant, app, carries, &claims{
		Subject: t.UserID, Audience: audience{tenant.BaseURL},
		SessionID: t.SessionID, AuthTime: t.AuthTime.Unix(), ACR: acr, AMR: slices.Clone(t.Methods),
	})
	if err != nil {
		return TokenResponse{}, err
	}
	return TokenResponse{AccessToken: token, TokenType: TokenTypeBearer, ExpiresIn: firstPartyTTL, Scope: carries.String()}, nil
}
