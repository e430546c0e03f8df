package token

import (
	"context"

	"stonetown/oauth/dpop"
	"stonetown/oauth/protocol"
)

// Confirmation names the key that a token is bound to (RFC 7800 §3, RFC 9449 §6.1).
type Confirmation struct {
	Thumbprint string `json:"jkt,omitempty"` // empty: to none
}

// TokenType is how a token is presented.
func (c Confirmation) TokenType() string {
	if c.Thumbprint != "" {
		return protocol.TokenTypeDPoP
	}
	return protocol.TokenTypeBearer
}

// VerifyBound is [Service.Verify] for tokens that are bound to a key, and for these only: the
// request that the token came with must have a proof of that key, which is good once. It
// says of r what the request was sent with, but for token and time. A token that is refused
// is a [*TokenError], a proof a [*dpop.Error].
func (s *Service) VerifyBound(ctx context.Context, tenant protocol.Tenant, token string, r dpop.Request) (*Principal, error) {
	p, err := s.verify(ctx, tenant, token)
	if err != nil {
		return nil, err
	}
	if p.Thumbprint == "" {
		return nil, &Error{NotBound}
	}
	r.Token, r.Now = token, s.clock()
	proof, err := dpop.Verify(r)
	if err != nil {
		return nil, err
	}
	if proof.Thumbprint != p.Thumbprint {
		return nil, &Error{WrongKey}
	}
	if err := s.authn.UseProof(ctx, tenant, proof); err != nil {
		return nil, err
	}
	return p, nil
}
