package token

import (
	"context"
	"slices"
	"time"

	"stonetown/oauth/client"
	"stonetown/oauth/keys"
	"stonetown/oauth/protocol"
)

// FirstParty is the client_id of tokens that users get from the product itself, without an
// application.
const FirstParty = "first-party"

// firstPartyTTL is the lifetime of such a token. It ends with its session in any case.
const firstPartyTTL = time.Hour

// UserToken describes the user of a token.
type UserToken struct {
	UserID    string
	SessionID string
	Methods   []string  // amr (RFC 8176)
	AuthTime  time.Time // of the last factor
	AAL2      bool      // two factors were proved
}

// IssueToUser issues a token for the product's own API to a user who has signed in, with the
// scopes for the own account and those of the user's groups. It fails with
// [access.ErrUserGone].
func (s *Service) IssueToUser(ctx context.Context, tenant protocol.Tenant, t UserToken) (Response, error) {
	acr := protocol.AAL1
	if t.AAL2 {
		acr = protocol.AAL2
	}
	user, err := s.users.User(ctx, tenant.ID, t.UserID)
	if err != nil {
		return Response{}, err
	}
	carries, err := s.Entitled(ctx, tenant, EntitlementRequest{User: &user, Scopes: []string{"me:read", "me:write"}, GroupScopes: true})
	if err != nil {
		return Response{}, err
	}
	slices.Sort(carries.scopes)
	app := client.Application{ClientID: FirstParty, SigningAlg: keys.ES256, AccessTokenTTL: firstPartyTTL}
	token, err := s.mint(ctx, tenant, app, carries, &Claims{
		Subject: t.UserID, Audience: Audience{tenant.BaseURL},
		SessionID: t.SessionID, AuthTime: t.AuthTime.Unix(), ACR: acr, AMR: slices.Clone(t.Methods),
	})
	if err != nil {
		return Response{}, err
	}
	return Response{AccessToken: token, TokenType: protocol.TokenTypeBearer, ExpiresIn: firstPartyTTL, Scope: carries.String()}, nil
}
