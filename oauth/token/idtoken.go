package token

import (
	"context"
	"encoding/json"
	"strings"

	"stonetown/oauth/access"
	"stonetown/oauth/claim"
	"stonetown/oauth/client"
	"stonetown/oauth/protocol"
	"stonetown/oauth/scope"
)

// IDToken signs an ID token (OIDC Core §2). first states that the user has just signed in;
// only then it has the nonce. It names the key to which the access token is bound, because it
// can be exchanged for one. The caller issues it with accessToken.
func (m *Minter) IDToken(ctx context.Context, tenant protocol.Tenant, app client.Application, g access.Grant, user access.User, scopes scope.Set, configured claim.Values, accessToken string, first bool, key string) (string, error) {
	now := m.s.clock()
	c := user.Claims(scopes, g.Claims.For(app.AllowedScopes).IDToken)
	configured.AddTo(c, client.InIDToken)
	c["iss"], c["aud"], c["azp"] = tenant.BaseURL, app.ClientID, app.ClientID
	c["iat"], c["exp"], c["auth_time"] = now.Unix(), now.Add(app.AccessTokenTTL).Unix(), g.Authentication.AuthTime.Unix()
	c["acr"], c["amr"], c["sid"], c["gid"] = g.Authentication.ACR(), g.Authentication.Methods, g.Authentication.SessionID, g.ID
	c["at_hash"] = app.IDTokenAlg.HalfHash(accessToken)
	if first && g.Nonce != "" {
		c["nonce"] = g.Nonce
	}
	if key != "" {
		c["cnf"] = ConfirmationOf(key)
	}
	return m.s.keys.Sign(ctx, tenant, app.IDTokenAlg, idTokenType, c)
}

// idTokenType is the typ header of ID tokens.
const idTokenType = "JWT"

// IDClaims are the claims that are read from an ID token.
type IDClaims struct {
	Issuer    string `json:"iss"`
	Subject   string `json:"sub"`
	Audience  string `json:"aud"` // the application
	Expires   int64  `json:"exp"`
	GrantID   string `json:"gid"`
	SessionID string `json:"sid"`

	Confirmation Confirmation `json:"cnf"`
}

// ReadIDToken reads an ID token that has not expired. It fails with [*Error]; with the reason
// [Expired] it returns the claims as well.
func (s *Service) ReadIDToken(ctx context.Context, tenant protocol.Tenant, token string) (c IDClaims, err error) {
	payload, _, err := s.openToken(ctx, tenant, token, strings.ToLower(idTokenType))
	switch {
	case err != nil:
		return c, err
	case json.Unmarshal(payload, &c) != nil || c.Audience == "" || c.GrantID == "":
		return c, &Error{Malformed}
	case c.Issuer != tenant.BaseURL:
		return c, &Error{WrongIssuer}
	case !s.clock().Before(Seconds(c.Expires)):
		return c, &Error{Expired}
	}
	return c, nil
}
