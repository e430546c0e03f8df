package oauth

import (
	"context"
	"slices"
	"strings"
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
	Scopes    []string
	Methods   []string  // amr (RFC 8176)
	AuthTime  time.Time // of the last factor that was proved
	AAL2      bool      // two factors were proved then
}

// Levels of assurance, as values of acr.
const (
	AAL1 = "aal1"
	AAL2 = "aal2"
)

// IssueToUser issues a token for the product's own API to a user who has signed in.
func (s *Service) IssueToUser(ctx context.Context, tenant Tenant, t UserToken) (TokenResponse, error) {
	acr := AAL1
	if t.AAL2 {
		acr = AAL2
	}
	scope := strings.Join(t.Scopes, " ")
	app := Application{ClientID: FirstParty, SigningAlg: ES256, AccessTokenTTL: firstPartyTTL}
	token, err := s.mint(ctx, tenant, app, &claims{
		Subject: t.UserID, Audience: audience{tenant.BaseURL}, Scope: scope,
		SessionID: t.SessionID, AuthTime: t.AuthTime.Unix(), ACR: acr, AMR: slices.Clone(t.Methods),
	})
	if err != nil {
		return TokenResponse{}, err
	}
	return TokenResponse{AccessToken: token, TokenType: TokenTypeBearer, ExpiresIn: firstPartyTTL, Scope: scope}, nil
}
