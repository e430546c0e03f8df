package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"stonetown/oauth/dpop"
)

// The values of token_type, and schemes of authentication at resources.
const (
	TokenTypeBearer = "Bearer" // RFC 6750
	TokenTypeDPoP   = "DPoP"   // RFC 9449
)

// confirmation names the key that a token is bound to (RFC 7800 §3, RFC 9449 §6.1).
type confirmation struct {
	Thumbprint string `json:"jkt,omitempty"` // empty: to none
}

// tokenType is how a token is presented.
func (c confirmation) tokenType() string {
	if c.Thumbprint != "" {
		return TokenTypeDPoP
	}
	return TokenTypeBearer
}

// VerifyBound is [Service.Verify] for tokens that are bound to a key, and for these only: the
// request that the token came with must have a proof of that key, which is good once. It
// says of r what the request was sent with, but for token and time. A token that is refused
// is a [*TokenError], a proof a [*dpop.Error].
func (s *Service) VerifyBound(ctx context.Context, tenant Tenant, token string, r dpop.Request) (*Principal, error) {
	p, err := s.verify(ctx, tenant, token)
	if err != nil {
		return nil, err
	}
	if p.Thumbprint == "" {
		return nil, &TokenError{NotBound}
	}
	r.Token, r.Now = token, s.clock()
	proof, err := dpop.Verify(r)
	if err != nil {
		return nil, err
	}
	if proof.Thumbprint != p.Thumbprint {
		return nil, &TokenError{WrongKey}
	}
	if err := s.useProof(ctx, tenant, proof); err != nil {
		return nil, err
	}
	return p, nil
}

// provenKey is the thumbprint of the key that a client proves to have in a request to one of
// the endpoints for clients; empty if it sends no proof. It fails with [*Error].
// The proof is used up when the request is admitted.
func (s *Service) provenKey(tenant Tenant, by Credentials, path string) (string, error) {
	if len(by.Proofs) == 0 {
		return "", nil
	}
	proof, err := dpop.Verify(dpop.Request{Proofs: by.Proofs, Method: http.MethodPost, URL: tenant.BaseURL + path, Now: s.clock()})
	if err != nil {
		return "", invalidProof(err)
	}
	*by.once = append(*by.once, func(ctx context.Context) error { return invalidProof(s.useProof(ctx, tenant, proof)) })
	return proof.Thumbprint, nil
}

// invalidProof states the refusal of a proof as the token endpoint does (RFC 9449 §5).
func invalidProof(err error) error {
	if refused, ok := errors.AsType[*dpop.Error](err); ok {
		return &Error{InvalidDPoPProof, "the DPoP proof is not valid: " + string(refused.Reason)}
	}
	return err
}

// bindingKey is the key that the tokens of a token request will be bound to, empty for none.
func (s *Service) bindingKey(tenant Tenant, app Application, by Credentials) (string, error) {
	if app.DPoPBound && len(by.Proofs) == 0 {
		return "", &Error{InvalidDPoPProof, "the application requires tokens bound to a key, and the request has no DPoP proof"}
	}
	return s.provenKey(tenant, by, TokenPath)
}

// proofOverlap is for how much longer than it is accepted a proof is remembered: further
// than the clocks of processes differ.
const proofOverlap = time.Minute

// useProof notes that a proof came, which must be right: who could send others might use up
// what they name. It fails with [*dpop.Error] if it came before, to whichever process.
func (s *Service) useProof(ctx context.Context, tenant Tenant, p dpop.Proof) error {
	n, err := s.db.Exec(ctx, `INSERT INTO dpop_proofs (tenant_id, replay_key, expires_at) VALUES ($1, $2, $3) ON CONFLICT (tenant_id, replay_key) DO NOTHING`,
		tenant.ID, p.ReplayKey, p.Until.Add(proofOverlap).UnixMicro())
	if err != nil {
		return fmt.Errorf("note DPoP proof: %w", err)
	}
	if n == 0 {
		return &dpop.Error{Reason: dpop.Replayed}
	}
	return nil
}
