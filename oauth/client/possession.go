package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"stonetown/oauth/dpop"
	"stonetown/oauth/protocol"
)

// ProvenKey returns the thumbprint of the key that a request to an endpoint for clients
// proves; empty if it has no proof. It fails with [*protocol.Error]. The proof is consumed
// when the request is admitted.
func (s *Authenticator) ProvenKey(tenant protocol.Tenant, app Application, by Credentials, path string) (string, error) {
	if len(by.Proofs) == 0 {
		return "", nil
	}
	r := dpop.Request{Proofs: by.Proofs, Method: http.MethodPost, URL: tenant.BaseURL + path, Now: s.clock(), OfferNonce: by.OfferNonce}
	if app.RequireDPoPNonce {
		if err := s.DemandNonce(tenant, &r); err != nil {
			return "", err
		}
	}
	proof, err := dpop.Verify(r)
	if err != nil {
		return "", invalidProof(err)
	}
	if app.Profile == FAPI2 && !slices.Contains(fapi2Algs, proof.Alg) {
		return "", invalidProof(&dpop.Error{Reason: dpop.UnsupportedAlg})
	}
	*by.once = append(*by.once, func(ctx context.Context) error { return invalidProof(s.UseProof(ctx, tenant, proof)) })
	return proof.Thumbprint, nil
}

// invalidProof returns the refusal of a proof by the token endpoint (RFC 9449 §5).
func invalidProof(err error) error {
	refused, ok := errors.AsType[*dpop.Error](err)
	switch {
	case ok && refused.Reason == dpop.UseNonce:
		return protocol.NewError(protocol.UseDPoPNonce, "the DPoP proof must have the nonce of the header field "+dpop.NonceHeader)
	case ok:
		return protocol.NewError(protocol.InvalidDPoPProof, "the DPoP proof is not valid: "+string(refused.Reason))
	}
	return err
}

// DemandNonce demands a nonce of the tenant in the proof of a request, whose Now is set, and offers
// the present one. Endpoints for clients and the API have the same nonces, because clients store
// them by host.
func (s *Authenticator) DemandNonce(tenant protocol.Tenant, r *dpop.Request) error {
	key, err := s.seal.DeriveFor(tenant.ID, "dpop nonces")
	if err != nil {
		return fmt.Errorf("derive DPoP nonces: %w", err)
	}
	if r.Nonces = dpop.NewNonces(key); r.OfferNonce != nil {
		r.OfferNonce(r.Nonces.At(r.Now))
	}
	return nil
}

// BindingKey returns the key to which the tokens of a token request will be bound: the thumbprint of
// a DPoP key, or the binding of a certificate ([mtls.Certificate.Binding]); empty: to none. A token
// has one of them, so a request that proves both is refused.
func (s *Authenticator) BindingKey(tenant protocol.Tenant, app Application, by Credentials) (string, error) {
	switch {
	case !app.CertificateBound:
	case len(by.Proofs) > 0:
		return "", protocol.NewError(protocol.InvalidRequest, "tokens of the application are bound to its certificate, so the request cannot have a DPoP proof")
	case by.Certificate == nil:
		return "", protocol.NewError(protocol.InvalidRequest, "tokens of the application are bound to its certificate, and the request has none")
	default:
		return by.Certificate.Binding(), nil
	}
	if app.DPoPBound && len(by.Proofs) == 0 {
		return "", protocol.NewError(protocol.InvalidDPoPProof, "the application requires tokens bound to a key, and the request has no DPoP proof")
	}
	return s.ProvenKey(tenant, app, by, protocol.TokenPath)
}

// proofOverlap is how much longer than its validity a proof is stored. It is longer than the
// clocks of processes differ.
const proofOverlap = time.Minute

// UseProof stores that a valid proof was used. It fails with [*dpop.Error] if the proof was
// used before, on any process. Invalid proofs are not stored: otherwise an attacker could use
// up the ids of a client's proofs.
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
