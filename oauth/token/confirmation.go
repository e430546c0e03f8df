package token

import (
	"context"

	"stonetown/oauth/dpop"
	"stonetown/oauth/mtls"
	"stonetown/oauth/protocol"
)

// Confirmation names the key or the certificate to which a token is bound (RFC 7800 §3). The zero
// value is that of a token that is not bound; no token is bound to both.
type Confirmation struct {
	Thumbprint  string `json:"jkt,omitempty"`      // of a DPoP key (RFC 9449 §6.1)
	Certificate string `json:"x5t#S256,omitempty"` // thumbprint (RFC 8705 §3.1)
}

// ConfirmationOf returns the confirmation of what [client.Authenticator.BindingKey] returned.
func ConfirmationOf(key string) Confirmation {
	if thumbprint, ok := mtls.ThumbprintOf(key); ok {
		return Confirmation{Certificate: thumbprint}
	}
	return Confirmation{Thumbprint: key}
}

// Key is the inverse of [ConfirmationOf].
func (c Confirmation) Key() string {
	if c.Certificate != "" {
		return mtls.Binding(c.Certificate)
	}
	return c.Thumbprint
}

// TokenType returns the token_type, which is the scheme by which the token is presented.
func (c Confirmation) TokenType() string {
	if c.Thumbprint != "" {
		return protocol.TokenTypeDPoP
	}
	return protocol.TokenTypeBearer
}

// VerifyCertified is [Service.Verify] for a request on a connection with the certificate of a client:
// it also accepts tokens that are bound to that certificate (RFC 8705 §3). certificate returns its
// thumbprint, and empty if it is not valid; it is called for a bound token only.
func (s *Service) VerifyCertified(ctx context.Context, tenant protocol.Tenant, bearer string, certificate func() string) (*Principal, error) {
	p, err := s.verify(ctx, tenant, bearer)
	switch {
	case err != nil:
		return nil, err
	case p.Thumbprint != "":
		return nil, &Error{Bound}
	case p.Certificate != "" && p.Certificate != certificate():
		return nil, &Error{WrongCertificate}
	}
	return p, nil
}

// VerifyBound is [Service.Verify] for tokens that are bound to a DPoP key. The request must have a
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
