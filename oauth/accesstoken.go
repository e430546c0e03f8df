package oauth

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/lestrrat-go/jwx/v3/jws"

	"stonetown/internal/id"
)

// accessTokenType is the typ header of access tokens (RFC 9068 §2.1). It keeps
// every other kind of JWT from being taken for one.
const accessTokenType = "at+jwt"

// claims are the members of an access token (RFC 9068 §2.2).
type claims struct {
	Issuer    string   `json:"iss"`
	Subject   string   `json:"sub"`
	Audience  audience `json:"aud"`
	ClientID  string   `json:"client_id"`
	TenantID  string   `json:"tid"`
	Scope     string   `json:"scope,omitempty"`
	IssuedAt  int64    `json:"iat"` // this and the next two in seconds since 1970
	NotBefore int64    `json:"nbf"`
	Expires   int64    `json:"exp"`
	TokenID   string   `json:"jti"`

	// Of users, who have signed in.
	SessionID string   `json:"sid,omitempty"`
	GrantID   string   `json:"gid,omitempty"`
	AuthTime  int64    `json:"auth_time,omitempty"`
	ACR       string   `json:"acr,omitempty"`
	AMR       []string `json:"amr,omitempty"`

	// Of tokens that are bound to a key.
	Confirmation confirmation `json:"cnf,omitzero"`

	// Of tokens that others were exchanged for (RFC 8693).
	Act       *Actor     `json:"act,omitempty"`
	Parent    string     `json:"ptok,omitempty"` // jti
	Ancestors []Ancestor `json:"anc,omitempty"`

	keyID string // kid of the header, of one that was verified
}

// audience is one string or an array of them on the wire (RFC 7519 §4.1.3).
type audience []string

func (a audience) MarshalJSON() ([]byte, error) {
	if len(a) == 1 {
		return json.Marshal(a[0])
	}
	return json.Marshal([]string(a))
}

func (a *audience) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		*a = make(audience, 1)
		return json.Unmarshal(data, &(*a)[0])
	}
	return json.Unmarshal(data, (*[]string)(a))
}

// mint signs an access token for an application, with the scopes that it is entitled to.
// The caller sets subject and audience, and when the token expires at the latest, if that
// is not only for the application to say; the rest follows from tenant, application and
// clock.
func (s *Service) mint(ctx context.Context, tenant Tenant, app Application, carries entitlement, c *claims) (string, error) {
	now := s.clock()
	c.Scope = carries.String()
	c.Issuer, c.TenantID, c.ClientID = tenant.BaseURL, tenant.ID, app.ClientID
	c.IssuedAt, c.NotBefore = now.Unix(), now.Unix()
	if expires := now.Add(app.AccessTokenTTL).Unix(); c.Expires == 0 || expires < c.Expires {
		c.Expires = expires
	}
	c.TokenID = id.New(id.Token)
	return s.sign(ctx, tenant, app.SigningAlg, accessTokenType, c)
}

// sign makes a JWT with the tenant's key of an algorithm.
func (s *Service) sign(ctx context.Context, tenant Tenant, alg Alg, typ string, payload any) (string, error) {
	ring, err := s.keys.ring(ctx, tenant.ID)
	if err != nil {
		return "", err
	}
	key, ok := ring.sign[alg]
	if !ok {
		return "", fmt.Errorf("tenant %s has no %s signing key", tenant.ID, alg)
	}
	body, err := json.Marshal(payload)
	if err != nil {
		return "", fmt.Errorf("sign token: %w", err)
	}
	header := jws.NewHeaders()
	for name, value := range map[string]string{jws.TypeKey: typ, jws.KeyIDKey: key.kid} {
		if err := header.Set(name, value); err != nil {
			return "", fmt.Errorf("sign token: %w", err)
		}
	}
	token, err := jws.Sign(body, jws.WithKey(alg.jwa(), key.private, jws.WithProtectedHeaders(header)))
	if err != nil {
		return "", fmt.Errorf("sign token: %w", err)
	}
	return string(token), nil
}

// seconds is the inverse of time.Time.Unix.
func seconds(s int64) time.Time { return time.Unix(s, 0).UTC() }
