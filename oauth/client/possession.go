package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"stonetown/oauth/dpop"
	"stonetown/oauth/protocol"
)

// ProvenKey is the thumbprint of the key that a client proves to have in a request to one of
// the endpoints for clients; empty if it sends no proof. It fails with [*Error].
// The proof is used up when the request is admitted.
func (s *Authenticator) ProvenKey(tenant protocol.Tenant, by Credentials, path string) (string, error) {
	if len(by.Proofs) == 0 {
		return "", nil
	}
	proof, err := dpop.Verify(dpop.Request{Proofs: by.Proofs, Method: http.MethodPost, URL: tenant.BaseURL + path, Now: s.clock()})
	if err != nil {
		return "", invalidProof(err)
	}
	*by.once = append(*by.once, func(ctx context.Context) error { return invalidProof(s.UseProof(ctx, tenant, proof)) })
	return proof.Thumbprint, nil
}

// invalidProof states the refusal of a proof as the token endpoint does (RFC 9449 §5).
func invalidProof(err error) error {
	if refused, ok := errors.AsType[*dpop.Error](err); ok {
		return protocol.NewError(protocol.InvalidDPoPProof, "the DPoP proof is not valid: "+string(refused.Reason))
	}
	return err
}

// BindingKey is the key that the tokens of a token request will be bound to, empty for none.
func (s *Authenticator) BindingKey(tenant protocol.Tenant, app Application, by Credentials) (string, error) {
	if app.DPoPBound && len(by.Proofs) == 0 {
		return "", protocol.NewError(protocol.InvalidDPoPProof, "the application requires tokens bound to a key, and the request has no DPoP proof")
	}
	return s.ProvenKey(tenant, by, protocol.TokenPath)
}

// proofOverlap is for how much longer than it is accepted a proof is remembered: further
// than the clocks of processes differ.
const proofOverlap = time.Minute

// UseProof notes that a proof came, which must be right: who could send others might use up
// what they name. It fails with [*dpop.Error] if it came before, to whichever process.
func (s *Authenticator) UseProof(ctx context.Context, tenant protocol.Tenant, p dpop.Proof) error {
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
