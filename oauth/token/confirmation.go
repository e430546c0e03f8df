package token

import (
	"context"

	"stonetown/oauth/dpop"
	"stonetown/oauth/protocol"
)

// Confirmation names the key to which a token is bound (RFC 7800 §3, RFC 9449 §6.1).
type Confirmation struct {
	Thumbprint string `json:"jkt,omitempty"` // empty: it is not bound
}

// TokenType returns the token_type, which is the scheme by which the token is presented.
func (c Confirmation) TokenType() string {
	if c.Thumbprint != "" {
		return protocol.TokenTypeDPoP
	}
	return protocol.TokenTypeBearer
}

// VerifyBound is [Service.Verify] for tokens that are bound to a key. The request must have a
// proof of that key, which is valid once, with a nonce if the token says so. r describes the
// request, except token, time and nonces.
// Refusals of the token are [*Error], those of the proof [*dpop.Error].
func (s *Service) VerifyBound(ctx context.Context, tenant protocol.Tenant, token string, r dpop.Request) (*Principal, error) {
	p, err := s.verify(ctx, tenant, token)
	if err != nil {
		return nil, err
	}
	if p.Thumbprint == "" {
		return nil, &Error{NotBound}
	}
	r.Token, r.Now = token, s.clock()
	if p.DPoPNonce {
		if err := s.authn.DemandNonce(tenant, &r); err != nil {
			return nil, err
		}
	}
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
